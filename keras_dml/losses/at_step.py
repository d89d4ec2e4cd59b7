"""A loss that depends on the training step, as one whose miner draws."""

import keras
from keras import ops

from keras_dml.losses.with_column import WithColumn
from keras_dml.ops.draws import at_step


@keras.saving.register_keras_serializable(package="keras_dml")
class AtStep(WithColumn):
    """Gives a loss the training step, which seeds the draws of its miner.

    A loss of your own reads it from `pairs.step`.

    `y_pred` is the output of the layer `TrainingStep`: the predictions of the
    loss, and the step as one more column. The reduction of `loss` itself is
    not used.

    Args:
        loss: A `keras_dml.losses.PairLoss`, or a loss made of them.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Example:

    ```python
    loss = Contrastive(miner="distance_weighted")
    model = keras.Model(image, TrainingStep(name="step")(embedding))
    model.compile("adam", loss=AtStep(loss))
    ```
    """

    layer = "TrainingStep"

    def with_column(self, y_true, y_pred, column):
        with at_step(ops.cast(ops.max(column, initial=0), "int32")):
            return self.loss.call(y_true, y_pred)
