"""Describes how an embedder normalizes its images, for manifests."""

from typing import Any

import keras
import numpy as np

from keras_dml.layers.image_preprocessing import (
    CAFFE_MEAN_BGR,
    IMAGENET_DEVIATION,
    IMAGENET_MEAN,
    ImagePreprocessing,
)

_NORMALIZATIONS: dict[str, dict[str, Any]] = {
    "none": {"order": "RGB", "mean": [0.0], "deviation": [1.0]},
    "unit": {"order": "RGB", "mean": [0.0], "deviation": [255.0]},
    "tf": {"order": "RGB", "mean": [127.5], "deviation": [127.5]},
    "torch": {
        "order": "RGB",
        "mean": [255.0 * mean for mean in IMAGENET_MEAN],
        "deviation": [255.0 * one for one in IMAGENET_DEVIATION],
    },
    "caffe": {"order": "BGR", "mean": [*CAFFE_MEAN_BGR], "deviation": [1.0]},
}


def normalization(embedder: keras.Model) -> dict[str, Any]:
    """Describes the model's own normalization: `(x - mean) / deviation`.

    Args:
        embedder: The exported model.

    Returns:
        JSON-able dict. "mean" and "deviation" have one value, or one for each
        channel in the order "order"; they are absent for an embedder that
        normalizes in another way.
    """
    for layer in embedder.layers:
        if isinstance(layer, ImagePreprocessing):
            found = _NORMALIZATIONS.get(layer.mode) or _affine(layer)
            return {"inside_model": True, **found}
    return {"inside_model": True}


def _affine(layer: ImagePreprocessing) -> dict[str, Any]:
    """Describes `x * scale + offset`, which is `(x + offset / scale) * scale`.

    A scale of 0, which ignores a channel, has no deviation that JSON can hold.
    """
    scale, offset = np.broadcast_arrays(
        *(np.atleast_1d(one) for one in (layer.scale, layer.offset))
    )
    if not scale.all():
        return {}
    return {
        "order": "RGB",
        "mean": (-offset / scale).tolist(),
        "deviation": (1.0 / scale).tolist(),
    }
