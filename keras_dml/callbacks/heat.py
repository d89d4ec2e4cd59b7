"""What both forms of heating up share: they bring a model to a state."""

import math

import keras
from keras import ops

from keras_dml.callbacks.learning_rate import LearningRate


def scaled_layer(model: keras.Model, layer_name: str, callback: str):
    """The `ScaledLogits` layer whose scale a callback changes.

    Raises:
        ValueError: If the model has no such layer.
    """
    names = [layer.name for layer in model.layers]
    if layer_name in names:
        layer = model.get_layer(layer_name)
        if hasattr(layer, "initial_scale"):
            return layer
    raise ValueError(
        f"`layer_name` of `{callback}` must name a `ScaledLogits` layer of the "
        f"model. Received: layer_name={layer_name!r}. The model has: {names}"
    )


def heat(model, layer, scale: float, learning_rate_factor: float) -> None:
    """Sets the scale and lowers the rates, unless that is done already.

    The scale is saved with the weights and the rates with the optimizer, so
    the scale tells whether a resumed model has been heated.
    """
    current = float(ops.convert_to_numpy(layer.scale))
    if math.isclose(current, scale, rel_tol=1e-5):
        return
    layer.scale.assign(scale)
    if learning_rate_factor != 1.0:
        LearningRate(model.optimizer).multiply(learning_rate_factor)


def check_positive(callback: str, **arguments: float) -> None:
    """Raises a ValueError unless all are positive numbers."""
    for name, value in arguments.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(
                f"`{name}` of `{callback}` must be a positive number. "
                f"Received: {name}={value!r}"
            )
