"""Heating up in steps."""

import math

import keras
from keras import ops

from keras_dml.callbacks.heat import check_positive, heat, scaled_layer
from keras_dml.callbacks.learning_rate import LearningRate


class GradualHeatUp(keras.callbacks.Callback):
    """Raises the temperature of the softmax every few epochs.

    At the start of the epochs `every`, `2 * every`, ... the scale of the
    `ScaledLogits` layer is multiplied by `scale_factor` and every learning
    rate by `learning_rate_factor`. With the defaults, four steps come close
    to one `HeatUp` from scale 16 to 4 with a tenth of the rate.

    Nothing is stored in the callback: how often a model was heated shows in
    its scale, which is saved with the weights. A resumed training goes on as
    one that was never interrupted.

    Args:
        every: Integer, number of epochs between two steps. Defaults to `10`.
        scale_factor: Float other than 1. Defaults to `1 / 1.41`.
        learning_rate_factor: Float. Defaults to `0.562`; `1.0` leaves the
            rates alone.
        layer_name: String, the `ScaledLogits` layer. Defaults to `"logits"`.

    Raises:
        ValueError: If an argument is out of range; at the start of a
            training, if the layer is missing or the optimizer follows a
            schedule.

    Example:

    ```python
    model.fit(dataset, epochs=50, callbacks=[GradualHeatUp(every=10)])
    ```

    Reference:
        Zhang et al., "Heated-Up Softmax Embedding", 2018 (in the authors'
        code).
    """

    def __init__(
        self,
        every=10,
        scale_factor=1 / 1.41,
        learning_rate_factor=0.562,
        layer_name="logits",
    ):
        super().__init__()
        if not isinstance(every, int) or every < 1:
            raise ValueError(
                "`every` of `GradualHeatUp` must be a positive integer. "
                f"Received: every={every!r}"
            )
        check_positive(
            "GradualHeatUp",
            scale_factor=scale_factor,
            learning_rate_factor=learning_rate_factor,
        )
        if math.isclose(scale_factor, 1.0, rel_tol=1e-3):
            raise ValueError(
                "`scale_factor` of `GradualHeatUp` must differ from 1, or a "
                "heated model could not be told from one that is not. "
                f"Received: scale_factor={scale_factor!r}"
            )
        self.every = every
        self.scale_factor = scale_factor
        self.learning_rate_factor = learning_rate_factor
        self.layer_name = layer_name

    def on_train_begin(self, logs=None):
        scaled_layer(self.model, self.layer_name, "GradualHeatUp")
        if self.learning_rate_factor != 1.0:
            LearningRate(self.model.optimizer).require_settable("GradualHeatUp")

    def on_epoch_begin(self, epoch, logs=None):
        layer = scaled_layer(self.model, self.layer_name, "GradualHeatUp")
        scale = float(ops.convert_to_numpy(layer.scale))
        done = round(
            math.log(scale / layer.initial_scale) / math.log(self.scale_factor)
        )
        for step in range(done, epoch // self.every):
            heat(
                self.model,
                layer,
                layer.initial_scale * self.scale_factor ** (step + 1),
                self.learning_rate_factor,
            )
