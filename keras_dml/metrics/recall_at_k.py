"""Recall@K as a Keras metric."""

import keras

from keras_dml.checks import positive_integer
from keras_dml.metrics.neighbors import recall_at_k
from keras_dml.metrics.retrieval_metric import RetrievalMetric


@keras.saving.register_keras_serializable(package="keras_dml")
class RecallAtK(RetrievalMetric):
    """The share of rows with a row of their class among the `k` nearest.

    Args:
        k: Positive integer. Defaults to `1`.
        capacity: Positive integer, the number of rows that are kept. Defaults
            to `10_000`.
        **kwargs: `normalize`, `dim`, `name` and `dtype`, see
            `keras_dml.metrics.RetrievalMetric`. `name` defaults to
            `"recall_at_K"` with the number for K.

    Raises:
        ValueError: If `k` is not positive or not below `capacity`.

    Example:

    ```python
    model.compile("adam", loss=Contrastive(), metrics=[RecallAtK(1)])
    model.fit(images, labels, validation_data=(other_images, other_labels))
    ```

    Reference:
        Jegou, Douze and Schmid, "Product Quantization for Nearest Neighbor
        Search", 2011, section V.B.
    """

    def __init__(self, k=1, capacity=10_000, name=None, **kwargs):
        self.k = positive_integer("k", k)
        super().__init__(
            depth=k, capacity=capacity, name=name or f"recall_at_{k}", **kwargs
        )

    def by_row(self, neighbors):
        return recall_at_k(neighbors, self.k)
