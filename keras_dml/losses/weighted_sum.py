"""Several losses at once."""

import keras

from keras_dml.losses.checks import check_integer_labels, full_precision


@keras.saving.register_keras_serializable(package="keras_dml")
class WeightedSum(keras.losses.Loss):
    """Weighted sum of losses on the same labels and predictions.

    `L = sum_i w_i L_i` for every row, before the reduction; the reduction of
    the terms themselves is not used.

    Args:
        losses: List of `keras.losses.Loss` whose `call` gives one number per
            row.
        weights: List of floats, one per loss. Defaults to `None`, all `1.0`.
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String. Defaults to `"weighted_sum"`.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`.

    Raises:
        ValueError: If there is no loss, or not one weight for each.

    Example:

    ```python
    loss = WeightedSum([ProxyNCA(), Softmax()], weights=[1.0, 0.1])
    ```
    """

    def __init__(
        self,
        losses,
        weights=None,
        reduction="sum_over_batch_size",
        name="weighted_sum",
        dtype=None,
    ):
        super().__init__(
            name=name, reduction=reduction, dtype=full_precision(dtype)
        )
        weights = [1.0] * len(losses) if weights is None else list(weights)
        if not losses or len(weights) != len(losses):
            raise ValueError(
                "`losses` must hold at least one loss and `weights` one number "
                f"for each. Received: {len(losses)} losses and weights="
                f"{weights}"
            )
        self.losses = [
            loss
            if isinstance(loss, keras.losses.Loss)
            else keras.losses.deserialize(loss)
            for loss in losses
        ]
        self.weights = weights

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_integer_labels(y_true, self.name)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        return sum(
            weight * loss.call(y_true, y_pred)
            for weight, loss in zip(self.weights, self.losses, strict=True)
        )

    def get_config(self):
        config = super().get_config()
        config.update(
            {
                "losses": [
                    keras.losses.serialize(loss) for loss in self.losses
                ],
                "weights": self.weights,
            }
        )
        return config
