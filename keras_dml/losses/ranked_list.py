"""Ranked list loss: pairs beyond two boundaries, the farthest weigh most."""

import keras
from keras import ops

from keras_dml.checks import in_interval, not_negative, positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import masked_max, masked_sum, rounding


def ranked_list_loss(
    distance,
    positive,
    negative,
    boundary=1.2,
    margin=0.4,
    positive_scale=0.0,
    negative_scale=10.0,
    balance=0.5,
):
    """Computes the ranked list loss of each row, see `RankedList`.

    Args:
        distance: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        boundary: Float. Defaults to `1.2`.
        margin: Float. Defaults to `0.4`.
        positive_scale: Float. Defaults to `0.0`.
        negative_scale: Float. Defaults to `10.0`.
        balance: Float. Defaults to `0.5`.

    Returns:
        Tensor `(rows,)` of the dtype of `distance`, never negative.

    Example:

    >>> distance = np.array([[0.0, 1.0, 1.0]])
    >>> positive = np.array([[False, True, False]])
    >>> negative = np.array([[False, False, True]])
    >>> loss = ranked_list_loss(distance, positive, negative, boundary=1.5)
    >>> float(loss[0])  # the negative is 0.5 inside of the boundary
    0.25
    """
    too_far = distance - (boundary - margin)
    too_near = boundary - distance
    return (1.0 - balance) * _weighted_mean(
        too_far, positive, positive_scale
    ) + balance * _weighted_mean(too_near, negative, negative_scale)


def _weighted_mean(excess, mask, scale):
    # The rounding error of equal rows must not count as a term above zero.
    mask = ops.logical_and(mask, excess > rounding(excess))
    fixed = ops.stop_gradient(scale * excess)
    largest = masked_max(fixed, mask)[:, None]
    weights = ops.exp(ops.where(mask, fixed - largest, 0.0))
    weights = ops.where(mask, weights, 0.0)
    total = masked_sum(weights * excess, mask)
    return ops.divide_no_nan(total, ops.sum(weights, axis=1))


@keras.saving.register_keras_serializable(package="keras_dml")
class RankedList(PairLoss):
    """Draws positives into a ball and negatives out of a larger one.

    `L_i = (1 - l) sum_P w_ij [d_ij - (a - m)]_+ / sum_P w_ij`
    `+ l sum_N w_ij [a - d_ij]_+ / sum_N w_ij`

    with Euclidean distances `d_ij`, the boundary `a`, the margin `m`, and
    sums over the positives and over the negatives of row `i` whose term is
    not zero. A pair weighs `w_ij = exp(t [...]_+)`, with a scale `t` of its
    kind: those farthest on the wrong side weigh most. Weights are constants
    in the gradient. A positive need not come nearer than `a - m`, so that the
    spread within a class remains.

    Args:
        boundary: Positive float, `a`. Defaults to `1.2`.
        margin: Float, `m`, at least 0. Defaults to `0.4`.
        positive_scale: Float, `t` of the positives, at least 0. Defaults to
            `0.0`, equal weights.
        negative_scale: Float, `t` of the negatives, at least 0. Defaults to
            `10.0`.
        balance: Float from 0 to 1, `l`, the weight of the negatives. Defaults
            to `0.5`.
        **kwargs: `normalize`, `miner`, `average`, `similarity`, `reduction`,
            `name` and `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If a number is out of range.

    Example:

    ```python
    model.compile("adam", loss=RankedList(boundary=1.2, margin=0.4))
    ```

    Reference:
        Wang et al., "Ranked List Loss for Deep Metric Learning", 2019.
    """

    metric = "euclidean"
    usual_average = None

    def __init__(
        self,
        boundary=1.2,
        margin=0.4,
        positive_scale=0.0,
        negative_scale=10.0,
        balance=0.5,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.boundary = positive_number("boundary", boundary)
        self.margin = not_negative("margin", margin)
        self.positive_scale = not_negative("positive_scale", positive_scale)
        self.negative_scale = not_negative("negative_scale", negative_scale)
        self.balance = in_interval("balance", balance, 0, 1, "both")

    def pair_loss(self, pairs: Pairs):
        values = ranked_list_loss(
            self.distances(pairs),
            *pairs.masks,
            boundary=self.boundary,
            margin=self.margin,
            positive_scale=self.positive_scale,
            negative_scale=self.negative_scale,
            balance=self.balance,
        )
        return self.mean(pairs)(values)
