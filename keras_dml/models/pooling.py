"""The pooling between a backbone and the head."""

import math

import keras

from keras_dml.errors import UsageError
from keras_dml.layers import (
    GlobalAveragePlusMaxPooling2D,
    GlobalGeneralizedMeanPooling2D,
    GlobalKMaxPooling2D,
    TokenPooling,
)

_MAP_POOLINGS = {
    "average": keras.layers.GlobalAveragePooling2D,
    "max": keras.layers.GlobalMaxPooling2D,
    "average_plus_max": GlobalAveragePlusMaxPooling2D,
    "generalized_mean": GlobalGeneralizedMeanPooling2D,
}


def pooling_layer(pooling, k, name, backbone, feature_shape):
    """Returns the pooling layer; in float16 large sums would overflow."""
    arguments = {"dtype": "float32", "name": "pooling"}
    rank = len(feature_shape)
    if rank == 2 and pooling == "none":
        return keras.layers.Identity(**arguments)
    if rank == 3 and pooling not in ("none", "generalized_mean"):
        if pooling == "class_token" and not backbone.class_token:
            raise UsageError(
                '`pooling="class_token"` needs a class token, which '
                f"{name!r} has not. Choose average, max, k_max or "
                "average_plus_max."
            )
        layer = TokenPooling(pooling, backbone.prefix_tokens, k, **arguments)
        check_k(layer, feature_shape, f"patches of {name!r}")
        return layer
    if rank != 4 or pooling not in ("k_max", *_MAP_POOLINGS):
        raise _useless_pooling(pooling, name, rank)
    if pooling == "k_max":
        layer = GlobalKMaxPooling2D(k, **arguments)
        check_k(layer, feature_shape, f"positions in maps of {name!r}")
        return layer
    return _MAP_POOLINGS[pooling](**arguments)


def check_k(pooling, feature_shape, what):
    """Raises if a layer averages more activations than features have."""
    k, sides = getattr(pooling, "k", 1), feature_shape[1:-1]
    if k == 1 or None in sides:
        return
    most = math.prod(sides) - getattr(pooling, "prefix_tokens", 0)
    if k > most:
        raise UsageError(
            f"`k` must be at most {most}, the number of {what}. Received: k={k}"
        )


def _useless_pooling(pooling, name, rank):
    gives = {
        2: "pooled features, which need `none`",
        3: "tokens, which need class_token, average, max, k_max or "
        "average_plus_max",
        4: "maps, which need average, max, k_max, average_plus_max or "
        "generalized_mean",
    }.get(rank, f"features of {rank} dimensions, which no pooling takes")
    return UsageError(
        f"`pooling` does not fit {name!r}: it gives {gives}. "
        f"Received: pooling={pooling!r}"
    )
