"""Precision@1 as a Keras metric."""

import keras

from keras_dml.metrics.neighbors import recall_at_k
from keras_dml.metrics.retrieval_metric import RetrievalMetric


@keras.saving.register_keras_serializable(package="keras_dml")
class PrecisionAt1(RetrievalMetric):
    """The share of rows whose nearest other row is of their class.

    It equals Recall@1.

    Args:
        capacity: Positive integer, the number of rows that are kept. Defaults
            to `10_000`.
        name: String. Defaults to `"precision_at_1"`.
        **kwargs: `normalize`, `dim` and `dtype`, see
            `keras_dml.metrics.RetrievalMetric`.

    Raises:
        ValueError: If `capacity` is not above 1.

    Example:

    >>> metric = PrecisionAt1(capacity=100)
    >>> metric.update_state(np.array([0, 0]), np.eye(2))
    >>> metric.update_state(np.array([1]), np.array([[0.8, 0.6]]))
    >>> float(metric.result())
    0.0
    """

    def __init__(self, capacity=10_000, name="precision_at_1", **kwargs):
        super().__init__(depth=1, capacity=capacity, name=name, **kwargs)

    def by_row(self, neighbors):
        return recall_at_k(neighbors, 1)
