"""Backbones by name, and the models built around them."""

from keras_dml.models.backbones import (
    BACKBONES,
    Backbone,
    get_backbone,
    list_backbones,
)
from keras_dml.models.build import (
    build_embedder,
    build_trainer,
    pooled_features,
    scales_similarities,
    uses_boundaries,
    uses_proxies,
    uses_sample_awareness,
)
from keras_dml.models.loading import load_embedder
from keras_dml.models.precision import float32_clone
from keras_dml.models.small_cnn import small_cnn

__all__ = [
    "BACKBONES",
    "Backbone",
    "build_embedder",
    "build_trainer",
    "float32_clone",
    "get_backbone",
    "list_backbones",
    "load_embedder",
    "pooled_features",
    "scales_similarities",
    "small_cnn",
    "uses_boundaries",
    "uses_proxies",
    "uses_sample_awareness",
]
