# ruff: noqa: F401
"""Data sets, splits, samplers and input pipelines.

This package does not import the modules that need TensorFlow
(`augmentation`, `decoding`, `fixed_parallelism`, `image_fit`, `index_batches`,
`loading`, `orientation`, `pipeline`, `random_crop`, `resizing` and
`verification`). Import each of them directly.
"""

from keras_dml.data.class_folds import fold_classes
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers import READERS, read
from keras_dml.data.sampling import balanced_batches
from keras_dml.data.shuffled_passes import random_batches
from keras_dml.data.splits import (
    class_disjoint,
    first_half,
    hold_out_classes,
    some_classes,
    within_classes,
)
from keras_dml.data.weighted_sampling import inverse_frequency_batches
