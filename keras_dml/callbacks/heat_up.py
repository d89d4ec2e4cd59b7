"""Heating up at once."""

import keras

from keras_dml.callbacks.heat import check_positive, heat, scaled_layer
from keras_dml.callbacks.learning_rate import LearningRate


class HeatUp(keras.callbacks.Callback):
    """Raises the temperature of the softmax, once.

    From the start of `epoch` on, the scale of the `ScaledLogits` layer is
    `scale` and every learning rate is multiplied by `learning_rate_factor`.
    A small scale (a high temperature) spreads the gradient over the rows that
    are already right, so that classes become compact.

    Nothing is stored in the callback: whether a model is heated shows in its
    scale, which is saved with the weights. A resumed training goes on as one
    that was never interrupted.

    Args:
        epoch: Integer, the first heated epoch, counted from 0.
        scale: Float, the new scale.
        learning_rate_factor: Float. Defaults to `0.1`; `1.0` leaves the
            rates alone.
        layer_name: String, the `ScaledLogits` layer. Defaults to `"logits"`.

    Raises:
        ValueError: If an argument is out of range; at the start of a
            training, if the layer is missing, begins with this very scale, or
            the optimizer follows a schedule.

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
        super().__init__()
        if not isinstance(epoch, int) or epoch < 0:
            raise ValueError(
                "`epoch` of `HeatUp` must be an integer from 0 on. "
                f"Received: epoch={epoch!r}"
            )
        check_positive(
            "HeatUp", scale=scale, learning_rate_factor=learning_rate_factor
        )
        self.epoch = epoch
        self.scale = scale
        self.learning_rate_factor = learning_rate_factor
        self.layer_name = layer_name

    def on_train_begin(self, logs=None):
        layer = scaled_layer(self.model, self.layer_name, "HeatUp")
        if layer.initial_scale == self.scale:
            raise ValueError(
                "`scale` of `HeatUp` must differ from the scale that the layer "
                "begins with, or a heated model could not be told from one "
                f"that is not. Received: scale={self.scale!r}"
            )
        if self.learning_rate_factor != 1.0:
            LearningRate(self.model.optimizer).require_settable("HeatUp")

    def on_epoch_begin(self, epoch, logs=None):
        if epoch >= self.epoch:
            layer = scaled_layer(self.model, self.layer_name, "HeatUp")
            heat(self.model, layer, self.scale, self.learning_rate_factor)
