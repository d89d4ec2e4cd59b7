"""Base of losses that take one more column from a layer."""

import abc

from keras_dml.losses.base import Loss
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.losses.wrapped import as_loss


class WithColumn(Loss, abc.ABC):
    """Base of losses that wrap a loss and take one more column.

    Args:
        loss: A `keras_dml.losses.PairLoss`, a loss made of them, or its name.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.
    """

    label_dtypes = PairLoss.label_dtypes
    labels_in_words = PairLoss.labels_in_words
    # The layer that appends the column.
    layer = ""

    def __init__(self, loss, **kwargs):
        super().__init__(**kwargs)
        self.loss = as_loss(loss)

    @abc.abstractmethod
    def with_column(self, y_true, y_pred, column):
        """Returns one loss per row of `y_pred`, which lacks the column."""

    def call(self, y_true, y_pred):
        if len(y_pred.shape) != 2:
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be the output of "
                f"`{self.layer}`, of shape (batch, dim + 1). Received: "
                f"y_pred.shape={tuple(y_pred.shape)}"
            )
        return self.with_column(y_true, y_pred[:, :-1], y_pred[:, -1])
