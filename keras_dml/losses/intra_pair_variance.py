"""Pairs of one kind are drawn to the mean of their kind."""

import keras
from keras import ops

from keras_dml.checks import finite_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.average import ALL
from keras_dml.ops.pairs import Pairs


def intra_pair_variance_loss(
    similarity,
    positive,
    negative,
    positive_tolerance=0.01,
    negative_tolerance=0.01,
    mean=ALL,
):
    """Adds the squared distances of pairs behind the mean of their kind.

    Args:
        similarity: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        positive_tolerance: Float. Defaults to `0.01`.
        negative_tolerance: Float. Defaults to `0.01`.
        mean: Function that averages the squares, such as a
            `keras_dml.ops.Average`. Defaults to that of all pairs.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the sum of the means
        over the positive and the negative pairs of all replicas.

    Example:

    >>> similarity = np.array([[0.0, 0.5, 1.0]])
    >>> positive = np.array([[False, True, True]])
    >>> nothing = np.zeros((1, 3), bool)
    >>> loss = intra_pair_variance_loss(similarity, positive, nothing, 0.0)
    >>> float(loss[0])  # the mean is 0.75, 0.5 lies 0.25 below
    0.03125
    """
    similarity = ops.convert_to_tensor(similarity)
    of_positives = ALL(similarity, positive)[:, None]
    of_negatives = ALL(similarity, negative)[:, None]
    below = ops.relu((1.0 - positive_tolerance) * of_positives - similarity)
    above = ops.relu(similarity - (1.0 + negative_tolerance) * of_negatives)
    return mean(ops.square(below), positive) + mean(ops.square(above), negative)


@keras.saving.register_keras_serializable(package="keras_dml")
class IntraPairVariance(PairLoss):
    """Draws pairs to the mean similarity of their kind, from the wrong side.

    `L = mean_P [(1 - e+) m+ - s_ij]_+^2 + mean_N [s_ij - (1 + e-) m-]_+^2`

    with cosines `s_ij`, their means `m+` and `m-` over the positive pairs `P`
    and the negative pairs `N` of the batch, and tolerances `e`. It makes the
    similarities of a kind alike, not high or low: add it to a loss that does,
    with `WeightedSum`.

    It is one number for the whole batch of all replicas. So every row has the
    same value, and sample weights scale the whole loss.

    Args:
        positive_tolerance: Float, `e+`. Defaults to `0.01`.
        negative_tolerance: Float, `e-`. Defaults to `0.01`.
        **kwargs: `normalize`, `miner`, `average`, `reduction`, `name` and
            `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If a tolerance is not finite.

    Example:

    ```python
    loss = WeightedSum([MultiSimilarity(), IntraPairVariance()], [1.0, 0.5])
    ```

    Reference:
        Yu and Tao, "Deep Metric Learning with Tuplet Margin Loss", 2019.
    """

    takes_any_metric = False

    def __init__(
        self, positive_tolerance=0.01, negative_tolerance=0.01, **kwargs
    ):
        super().__init__(**kwargs)
        self.positive_tolerance = finite_number(
            "positive_tolerance", positive_tolerance
        )
        self.negative_tolerance = finite_number(
            "negative_tolerance", negative_tolerance
        )

    def pair_loss(self, pairs: Pairs):
        return intra_pair_variance_loss(
            self.similarities(pairs),
            *pairs.masks,
            positive_tolerance=self.positive_tolerance,
            negative_tolerance=self.negative_tolerance,
            mean=self.mean(pairs),
        )
