"""Predicts one view of an image from the other."""

import keras
from keras import ops

from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import batch_mean, count, masked_sum
from keras_dml.ops.similarities import unit_rows


def simsiam_loss(similarity, positive):
    """Averages `-s_ij` over the positive pairs.

    Args:
        similarity: Float tensor `(rows, columns)`, the cosines of predictions
            and embeddings.
        positive: Boolean tensor `(rows, columns)`, the pairs of views of one
            image.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the mean over the
        positive pairs of all replicas.

    Example:

    >>> similarity = np.array([[1.0, 0.5], [0.3, 1.0]])
    >>> positive = np.array([[False, True], [True, False]])
    >>> float(simsiam_loss(similarity, positive)[0])
    -0.4
    """
    return -batch_mean(
        masked_sum(similarity, positive), count(positive, similarity.dtype)
    )


@keras.saving.register_keras_serializable(package="keras_dml")
class SimSiam(PairLoss):
    """Predicts the embedding of a view from another view of the image.

    `L = -mean_{i, p} cos(h(x_i), x_p)`

    over the pairs of rows `i` and `p` of one class, with the prediction `h`
    that the layer `Predictor` makes. `x_p` is a constant for the gradient;
    without predictor and constant all embeddings would become the same. No
    row is pushed away from another.

    A class is an image, and its rows in the batch are its views. `y_pred` is
    the output of `Predictor`: the prediction, then the embedding.

    The mean is over the batch of all replicas. So every row has the same
    value, and sample weights scale the whole loss.

    Args:
        **kwargs: `reduction`, `name` and `dtype`, see `keras_dml.losses.Loss`.

    Raises:
        ValueError: If there is a miner, `normalize` is False, or `y_pred` has
            an odd number of columns.

    Example:

    ```python
    model = keras.Model(image, Predictor(name="predictor")(embedding))
    model.compile("sgd", loss=SimSiam())
    ```

    Reference:
        Chen and He, "Exploring Simple Siamese Representation Learning", 2021,
        equations 1 to 4.
    """

    takes = "predictions"
    within_batch = True
    of_unit_rows = True
    takes_miner = False
    takes_any_metric = False
    takes_any_average = False

    def call(self, y_true, y_pred):
        columns = y_pred.shape[1] if len(y_pred.shape) == 2 else 1
        if columns is not None and columns % 2:
            raise ValueError(
                f"`y_pred` of the loss {self.name!r} must be the output of "
                "`Predictor`, of shape (batch, 2 * dim). Received: "
                f"y_pred.shape={tuple(y_pred.shape)}"
            )
        predictions, embeddings = ops.split(y_pred, 2, axis=1)
        pairs = self.batch_pairs(y_true, ops.stop_gradient(embeddings))
        return self.pair_loss(pairs.with_rows(unit_rows(predictions)))

    def pair_loss(self, pairs: Pairs):
        return simsiam_loss(self.similarities(pairs), pairs.positive)
