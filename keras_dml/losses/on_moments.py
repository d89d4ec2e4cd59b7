"""A loss on embeddings plus the same loss on those of higher moments."""

import keras
from keras import ops

from keras_dml.checks import integer_at_least
from keras_dml.losses.base import Loss
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.losses.wrapped import as_loss


@keras.saving.register_keras_serializable(package="keras_dml")
class OnMoments(Loss):
    """Adds a loss on pairs over the orders of `HighOrderMoments`.

    `L_i = sum_k L(z_k)_i` for every row, before the reduction, with the
    embedding `z_1` and those of the moments, `z_2` and on. The reduction of
    `loss` itself is not used.

    Args:
        loss: A `keras_dml.losses.PairLoss`.
        orders: Integer, that of the layer. Defaults to `5`.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If the columns of `y_pred` do not divide by `orders`.

    Example:

    ```python
    outputs = HighOrderMoments(orders=5, name="moments")([embedding, maps])
    trainer = keras.Model(image, outputs)
    trainer.compile("adam", OnMoments(Contrastive(), orders=5))
    ```

    Reference:
        Jacob et al., "Metric Learning with HORDE: High-Order Regularizer for
        Deep Embeddings", 2019, section 3.
    """

    label_dtypes = PairLoss.label_dtypes
    labels_in_words = PairLoss.labels_in_words

    def __init__(self, loss, orders=5, **kwargs):
        super().__init__(**kwargs)
        self.loss = as_loss(loss)
        self.orders = integer_at_least("orders", orders, least=2)

    def call(self, y_true, y_pred):
        columns = y_pred.shape[1] if len(y_pred.shape) == 2 else 1
        if columns is not None and columns % self.orders:
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be the output of "
                f"`HighOrderMoments`, of shape (batch, {self.orders} * dim). "
                f"Received: y_pred.shape={tuple(y_pred.shape)}"
            )
        parts = ops.split(y_pred, self.orders, axis=1)
        return sum(self.loss.call(y_true, part) for part in parts)
