"""A loss on pairs together with that on a memory of past embeddings."""

import keras

from keras_dml.losses.checks import full_precision
from keras_dml.losses.pair_loss import check_label_dtype


@keras.saving.register_keras_serializable(package="keras_dml")
class WithMemory(keras.losses.Loss):
    """A loss on pairs plus the column that `CrossBatchMemory` appends.

    `L_i = L(batch)_i + m_i` for every row, before the reduction; the reduction
    of `loss` itself is not used.

    Args:
        loss: A `keras_dml.losses.PairLoss`, for the rows of the batch with
            each other.
        reduction: See `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: String. Defaults to `"with_memory"`.
        dtype: Dtype of the computation, not a half precision. Defaults to
            `None`, which means `keras.config.floatx()`.

    Example:

    ```python
    memory = CrossBatchMemory(Contrastive(), size=8192, name="memory")
    model = keras.Model(
        {"image": image, "label": label}, memory([embedding, label])
    )
    model.compile("adam", loss=WithMemory(Contrastive()))
    ```

    Reference:
        Wang et al., "Cross-Batch Memory for Embedding Learning", 2020,
        algorithm 1.
    """

    def __init__(
        self,
        loss,
        reduction="sum_over_batch_size",
        name="with_memory",
        dtype=None,
    ):
        super().__init__(
            name=name, reduction=reduction, dtype=full_precision(dtype)
        )
        if not isinstance(loss, keras.losses.Loss):
            loss = keras.losses.deserialize(loss)
        self.loss = loss

    def __call__(self, y_true, y_pred, sample_weight=None):
        check_label_dtype(y_true, self.name)
        return super().__call__(y_true, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        if len(y_pred.shape) != 2:
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be the output of "
                "`CrossBatchMemory`, of shape (batch, dim + 1). Received: "
                f"y_pred.shape={tuple(y_pred.shape)}"
            )
        return self.loss.call(y_true, y_pred[:, :-1]) + y_pred[:, -1]

    def get_config(self):
        config = super().get_config()
        config.update({"loss": keras.losses.serialize(self.loss)})
        return config
