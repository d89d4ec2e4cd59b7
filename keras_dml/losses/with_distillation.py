"""A loss on labels plus a loss on the embeddings of a teacher."""

import keras
from keras import ops

from keras_dml.checks import finite_number
from keras_dml.losses.base import Loss
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.losses.wrapped import as_loss


@keras.saving.register_keras_serializable(package="keras_dml")
class WithDistillation(Loss):
    """Adds the entry that the layer `Distillation` appends to another loss.

    `L_i = w L(y, z)_i + t_i` for every row, before the reduction, with the
    last entry `t` along axis 1 of the predictions, and the others, `z`. The
    reduction of `loss` itself is not used.

    Args:
        loss: Any loss, or its name.
        weight: Float, `w`. Defaults to `1.0`; `0.0` trains on the teacher only.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If the predictions have neither two axes nor three.

    Example:

    ```python
    layer = Distillation(Relational(), name="distillation")
    model = keras.Model(
        {"image": image, "teacher": teacher},
        layer([logits, embedding, teacher]),
    )
    model.compile("adam", loss=WithDistillation(NormalizedSoftmax()))
    ```
    """

    label_dtypes = PairLoss.label_dtypes
    labels_in_words = PairLoss.labels_in_words

    def __init__(self, loss, weight=1.0, **kwargs):
        super().__init__(**kwargs)
        self.loss = as_loss(loss)
        self.weight = finite_number("weight", weight)

    def call(self, y_true, y_pred):
        if len(y_pred.shape) not in (2, 3):
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be the output of "
                "`Distillation`, of shape (batch, n + 1) or (batch, n + 1, m). "
                f"Received: y_pred.shape={tuple(y_pred.shape)}"
            )
        added = y_pred[:, -1]
        if len(added.shape) > 1:
            added = ops.mean(added, axis=1)
        return self.weight * self.loss.call(y_true, y_pred[:, :-1]) + added
