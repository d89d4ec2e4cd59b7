"""Models under a dtype policy, and their clones in float32."""

import contextlib
from collections.abc import Iterator

import keras


@contextlib.contextmanager
def dtype_policy(name: str) -> Iterator[None]:
    """Sets the dtype policy of new layers, then restores the former one.

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
    """Returns the same model with every layer computing in float32.

    Mixed precision speeds up training; exported files need float32, which
    the weights have in any case.

    Args:
        model: Functional or sequential model; left as it is.

    Returns:
        A model of the same layers and weights, or `model` itself when all of
        it computes in float32 already.
    """
    layers = model._flatten_layers(include_self=False)
    if all(layer.compute_dtype == "float32" for layer in layers):
        return model

    def in_float32(layer):
        return type(layer).from_config(
            {**layer.get_config(), "dtype": "float32"}
        )

    clone = keras.models.clone_model(
        model, clone_function=in_float32, recursive=True
    )
    clone.set_weights(model.get_weights())
    return clone
