"""Backbones, embedders, heads and trainers."""

from keras_dml.models.backbone import Backbone, custom_backbone
from keras_dml.models.backbones import (
    BACKBONES,
    get_backbone,
    list_backbones,
)
from keras_dml.models.batch_norm import (
    refresh_bn,
    set_batch_norm_mode,
    synchronize_batch_norm,
)
from keras_dml.models.derived import (
    cut_embedder,
    keep_features,
    pooled_features,
    with_image_size,
)
from keras_dml.models.embedder import build_embedder, load_embedder
from keras_dml.models.folding import fold_for_inference
from keras_dml.models.forward import forward_function
from keras_dml.models.head import Head
from keras_dml.models.head_options import HeadOptions
from keras_dml.models.heads import HEADS, get_head
from keras_dml.models.precision import float32_clone
from keras_dml.models.small_cnn import small_cnn
from keras_dml.models.trainer import build_trainer

__all__ = [
    "BACKBONES",
    "Backbone",
    "HEADS",
    "Head",
    "HeadOptions",
    "build_embedder",
    "build_trainer",
    "custom_backbone",
    "cut_embedder",
    "float32_clone",
    "fold_for_inference",
    "forward_function",
    "get_backbone",
    "get_head",
    "keep_features",
    "list_backbones",
    "load_embedder",
    "pooled_features",
    "with_image_size",
    "refresh_bn",
    "set_batch_norm_mode",
    "small_cnn",
    "synchronize_batch_norm",
]
