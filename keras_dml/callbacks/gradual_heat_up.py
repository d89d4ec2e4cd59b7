"""Raises the temperature of the softmax in steps."""

import math

from keras_dml.callbacks.heat_up import Heating
from keras_dml.checks import positive_integer, positive_number


class GradualHeatUp(Heating):
    """Raises the temperature of the softmax every few epochs.

    At the start of the epochs `every`, `2 * every`, ... it multiplies the
    scale of the `ScaledLogits` layer by `scale_factor` and every learning
    rate by `learning_rate_factor`. With the defaults, four steps come close
    to one `HeatUp` from scale 16 to 4 with a tenth of the rate. A resumed
    training continues like an uninterrupted one.

    Args:
        every: Integer, number of epochs between two steps. Defaults to `10`.
        scale_factor: Float other than 1. Defaults to `1 / 1.41`.
        learning_rate_factor: Float. Defaults to `0.562`; `1.0` does not
            change the rates.
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
        super().__init__(layer_name, learning_rate_factor)
        self.every = positive_integer("every", every)
        self.scale_factor = positive_number("scale_factor", scale_factor)
        if math.isclose(scale_factor, 1.0, rel_tol=1e-3):
            raise ValueError(
                "`scale_factor` of `GradualHeatUp` must differ from 1, or a "
                "heated model could not be told from one that is not. "
                f"Received: scale_factor={scale_factor!r}"
            )

    def on_epoch_begin(self, epoch, logs=None):
        initial, factor = self.layer().initial_scale, self.scale_factor
        done = round(math.log(self.current_scale / initial) / math.log(factor))
        for step in range(done, epoch // self.every):
            self.heat(initial * factor ** (step + 1))
