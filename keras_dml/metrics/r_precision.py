"""R-precision as a Keras metric."""

import keras

from keras_dml.metrics.neighbors import r_precision
from keras_dml.metrics.retrieval_metric import RetrievalMetric


@keras.saving.register_keras_serializable(package="keras_dml")
class RPrecision(RetrievalMetric):
    """The mean share of rows of the same class among the `R` nearest.

    `R` is the number of other rows of the class. For a class of more than
    `depth + 1` rows it is `depth`.

    Args:
        depth: Positive integer, the largest `R`. Defaults to `100`.
        capacity: Positive integer, the number of rows that are kept. Defaults
            to `10_000`.
        name: String. Defaults to `"r_precision"`.
        **kwargs: `normalize`, `dim` and `dtype`, see
            `keras_dml.metrics.RetrievalMetric`.

    Raises:
        ValueError: If `depth` is not positive or not below `capacity`.

    Example:

    ```python
    model.compile("adam", loss=Contrastive(), metrics=[RPrecision()])
    ```

    Reference:
        Musgrave, Belongie and Lim, "A Metric Learning Reality Check", 2020.
    """

    def __init__(
        self, depth=100, capacity=10_000, name="r_precision", **kwargs
    ):
        super().__init__(depth=depth, capacity=capacity, name=name, **kwargs)

    def by_row(self, neighbors):
        return r_precision(neighbors)
