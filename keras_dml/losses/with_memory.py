"""A loss on the pairs of a batch plus the loss on a memory of embeddings."""

import keras

from keras_dml.losses.with_column import WithColumn


@keras.saving.register_keras_serializable(package="keras_dml")
class WithMemory(WithColumn):
    """Adds the column that `CrossBatchMemory` appends to a loss on pairs.

    `L_i = L(batch)_i + m_i` for every row, before the reduction, with the
    column `m` of the memory. The reduction of `loss` itself is not used.

    Args:
        loss: A `keras_dml.losses.PairLoss`, which compares the rows of the
            batch with each other.
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

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

    layer = "CrossBatchMemory"

    def with_column(self, y_true, y_pred, column):
        return self.loss.call(y_true, y_pred) + column
