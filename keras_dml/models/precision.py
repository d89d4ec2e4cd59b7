"""Sets dtype policies, and clones models in float32."""

import contextlib
from collections.abc import Iterator

import keras

from keras_dml.models.cloning import clone_layers


@contextlib.contextmanager
def dtype_policy(name: str) -> Iterator[None]:
    """Sets the dtype policy of new layers, then restores the previous one.

    Args:
        name: Name of a Keras dtype policy, such as `"mixed_bfloat16"`.
    """
    former = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(former)


def float32_clone(model: keras.Model) -> keras.Model:
    """Returns a clone of a model in which every layer computes in float32.

    Exported files need float32. Mixed precision only speeds up training: the
    weights are float32 under it too.

    Args:
        model: Functional or sequential model; it does not change.

    Returns:
        A model with the same layers and weights, or `model` itself if all its
        layers compute in float32.

    Raises:
        UsageError: If there is a clone, and a layer inside another layer does
            not compute in float32 or a model inside overrides `call`.

    Example:

    >>> from keras_dml.models import build_embedder
    >>> embedder = build_embedder("small_cnn", (28, 28, 1), dim=8)
    >>> float32_clone(embedder) is embedder
    True
    """
    with dtype_policy("float32"):
        return clone_layers(
            model,
            _in_float32,
            lambda layer: layer.compute_dtype != "float32",
            "A clone in float32 cannot change {}. Build `model` under the "
            "dtype policy `float32`, and set its weights.",
        )


def _in_float32(layer):
    return type(layer).from_config({**layer.get_config(), "dtype": "float32"})
