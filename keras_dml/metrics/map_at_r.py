"""MAP@R as a Keras metric."""

import keras

from keras_dml.metrics.neighbors import map_at_r
from keras_dml.metrics.retrieval_metric import RetrievalMetric


@keras.saving.register_keras_serializable(package="keras_dml")
class MAPAtR(RetrievalMetric):
    """Mean average precision over the `R` nearest rows of each row.

    `1/R sum_{i <= R} precision(i) match(i)` for each row, with `R` the number
    of other rows of its class. For a class of more than `depth + 1` rows `R`
    is `depth`.

    Args:
        depth: Positive integer, the largest `R`. Defaults to `100`.
        capacity: Positive integer, the number of rows that are kept. Defaults
            to `10_000`.
        name: String. Defaults to `"map_at_r"`.
        **kwargs: `normalize`, `dim` and `dtype`, see
            `keras_dml.metrics.RetrievalMetric`.

    Raises:
        ValueError: If `depth` is not positive or not below `capacity`.

    Example:

    ```python
    model.compile("adam", loss=Contrastive(), metrics=[MAPAtR()])
    best = keras.callbacks.ModelCheckpoint(
        "best.keras", "val_map_at_r", mode="max", save_best_only=True
    )
    model.fit(
        images, labels, validation_data=(others, labels_of_others),
        callbacks=[best],
    )
    ```

    Reference:
        Musgrave, Belongie and Lim, "A Metric Learning Reality Check", 2020.
    """

    def __init__(self, depth=100, capacity=10_000, name="map_at_r", **kwargs):
        super().__init__(depth=depth, capacity=capacity, name=name, **kwargs)

    def by_row(self, neighbors):
        return map_at_r(neighbors)
