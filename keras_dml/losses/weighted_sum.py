"""A weighted sum of losses."""

import keras

from keras_dml.checks import finite_number
from keras_dml.losses.base import Loss, has_column_per_class
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.losses.wrapped import as_loss


@keras.saving.register_keras_serializable(package="keras_dml")
class WeightedSum(Loss):
    """Adds weighted losses on the same labels and predictions.

    `L = sum_i w_i L_i` for every row, before the reduction. The reductions of
    the terms are not used.

    Args:
        losses: List of `keras.losses.Loss`, or their names, whose `call` gives
            one number per row.
        weights: List of floats, one per loss. Defaults to `None`, all `1.0`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If `losses` is empty, `weights` has another length or one
            that is not finite.

    Example:

    ```python
    loss = WeightedSum([ProxyNCA(), Softmax()], weights=[1.0, 0.1])
    ```
    """

    label_dtypes = PairLoss.label_dtypes
    labels_in_words = PairLoss.labels_in_words

    def __init__(self, losses, weights=None, **kwargs):
        super().__init__(**kwargs)
        weights = [1.0] * len(losses) if weights is None else list(weights)
        if not losses or len(weights) != len(losses):
            raise ValueError(
                "`losses` must hold at least one loss and `weights` one number "
                f"for each. Received: {len(losses)} losses and weights="
                f"{weights}"
            )
        self.losses = [as_loss(loss) for loss in losses]
        self.weights = [finite_number("weights", one) for one in weights]
        self.column_per_class = all(map(has_column_per_class, self.losses))

    def call(self, y_true, y_pred):
        return sum(
            weight * loss.call(y_true, y_pred)
            for weight, loss in zip(self.weights, self.losses, strict=True)
        )
