"""Raises the temperature of the softmax once; base class of both callbacks."""

import math

import keras
from keras import ops

from keras_dml.checks import integer_at_least, positive_number
from keras_dml.optimizers import LearningRate


class Heating(keras.callbacks.Callback):
    """Base of the callbacks that change the scale of a `ScaledLogits` layer.

    The callbacks have no state. Keras saves the scale with the weights and
    the learning rates with the optimizer: the scale shows how often a model
    was heated, and a resumed training continues like an uninterrupted one.

    Args:
        layer_name: String, name of the `ScaledLogits` layer.
        learning_rate_factor: Float, multiplies every rate when the scale
            changes; `1.0` does not change the rates.
    """

    def __init__(self, layer_name, learning_rate_factor):
        super().__init__()
        self.layer_name = layer_name
        self.learning_rate_factor = positive_number(
            "learning_rate_factor", learning_rate_factor
        )

    def layer(self) -> keras.layers.Layer:
        """Returns the `ScaledLogits` layer.

        Raises:
            ValueError: If the model has no such layer.
        """
        return self.layers()[0]

    def layers(self) -> list[keras.layers.Layer]:
        """Returns all layers of that name, also those of models in the model.

        Raises:
            ValueError: If there is none.
        """
        found = [
            layer
            for layer in self.model._flatten_layers(include_self=False)
            if layer.name == self.layer_name and hasattr(layer, "initial_scale")
        ]
        if not found:
            raise ValueError(
                f"`layer_name` of `{type(self).__name__}` must name a "
                "`ScaledLogits` layer of the model. Received: "
                f"layer_name={self.layer_name!r}. The model has: "
                f"{[layer.name for layer in self.model.layers]}"
            )
        return found

    @property
    def current_scale(self) -> float:
        """The current scale of the layer."""
        layer = self.layer()
        if not layer.built:
            return layer.initial_scale
        return float(ops.convert_to_numpy(layer.scale))

    def on_train_begin(self, logs=None):
        self.layer()
        if self.learning_rate_factor != 1.0:
            rates = LearningRate(self.model.optimizer)
            rates.require_settable(type(self).__name__)

    def heat(self, scale: float) -> None:
        """Sets the scale and multiplies the rates, unless the scale is set.

        Raises:
            ValueError: If the layer is not built.
        """
        if math.isclose(self.current_scale, scale, rel_tol=1e-5):
            return
        for layer in self.layers():
            if not layer.built:
                raise ValueError(
                    f"`{type(self).__name__}` cannot change the scale before "
                    f"the first step, for the layer {layer.name!r} is not "
                    f"built. Received: scale={scale!r}. Build the model first, "
                    "such as by a `keras.Input`."
                )
            layer.scale.assign(scale)
        if self.learning_rate_factor != 1.0:
            rates = LearningRate(self.model.optimizer)
            rates.multiply(self.learning_rate_factor)


class HeatUp(Heating):
    """Raises the temperature of the softmax, once.

    At the start of `epoch` it sets the scale of the `ScaledLogits` layer to
    `scale` and multiplies every learning rate by `learning_rate_factor`. A
    small scale (a high temperature) gives more gradient to rows that are
    already classified correctly, so that classes become compact. A resumed
    training continues like an uninterrupted one.

    Args:
        epoch: Integer, the first heated epoch, counted from 0.
        scale: Float, the new scale.
        learning_rate_factor: Float. Defaults to `0.1`; `1.0` does not change
            the rates.
        layer_name: String, the `ScaledLogits` layer. Defaults to `"logits"`.

    Raises:
        ValueError: If an argument is out of range; at the start of a
            training, if the layer is missing or has `scale` as its initial
            scale, or if the optimizer follows a schedule.

    Example:

    ```python
    model.fit(dataset, epochs=80, callbacks=[HeatUp(epoch=61, scale=4.0)])
    ```

    Reference:
        Zhang et al., "Heated-Up Softmax Embedding", 2018, section 3.2.
    """

    def __init__(
        self, epoch, scale, learning_rate_factor=0.1, layer_name="logits"
    ):
        super().__init__(layer_name, learning_rate_factor)
        self.epoch = integer_at_least("epoch", epoch, 0)
        self.scale = positive_number("scale", scale)

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if self.layer().initial_scale == self.scale:
            raise ValueError(
                "`scale` of `HeatUp` must differ from the scale that the layer "
                "begins with, or a heated model could not be told from one "
                f"that is not. Received: scale={self.scale!r}"
            )

    def on_epoch_begin(self, epoch, logs=None):
        if epoch >= self.epoch:
            self.heat(self.scale)
