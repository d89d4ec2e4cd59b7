"""Reads the 1,797 handwritten digits that come with scikit-learn."""

import numpy as np

from keras_dml.data import splits
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import reader

BRIGHTEST = 16


@reader()
def read_digits(root, facts) -> Manifest:
    """Reads the 8 x 8 gray images; half of the images of each digit train.

    Ten classes are too few to keep some unseen: a network trained on five
    digits separates the other five no better than an untrained one. So images
    are split within classes, and `seen` is set.

    Returns:
        `Manifest` of images in memory.
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    pixels = np.round(pixels * (255 / BRIGHTEST)).astype(np.uint8)
    return Manifest(
        name=facts.name,
        labels=labels,
        class_names=[str(digit) for digit in range(10)],
        ids=[f"digits/{row:04d}" for row in range(len(labels))],
        images=pixels.reshape(-1, 8, 8, 1),
        split=splits.within_classes(labels, fraction=0.5, seed=0),
        seen=True,
    )
