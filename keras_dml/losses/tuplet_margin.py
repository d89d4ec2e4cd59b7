"""Each positive against all negatives, with a margin on its angle."""

import keras
from keras import ops

from keras_dml.checks import positive_number
from keras_dml.losses.arcface import angle, cosine_of_smaller_angle
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.average import ALL
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import log_sum_exp


def tuplet_margin_loss(
    similarity, positive, negative, margin=0.1, scale=64.0, mean=ALL
):
    """Averages the tuplets of a batch, see `TupletMargin`.

    Args:
        similarity: Float tensor `(rows, columns)`, cosines.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        margin: Float, in radians. Defaults to `0.1`.
        scale: Float. Defaults to `64.0`.
        mean: Function that averages terms, such as a `keras_dml.ops.Average`.
            Defaults to that of all positive pairs.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the mean over the
        positive pairs of all replicas.

    Example:

    >>> similarity = np.array([[0.5, 0.5]])
    >>> first, second = np.array([[True, False]]), np.array([[False, True]])
    >>> loss = tuplet_margin_loss(similarity, first, second, margin=0.0)
    >>> float(loss[0])  # log(1 + exp(0))
    0.6931471805599453
    """
    of_negatives = log_sum_exp(scale * similarity, negative)[:, None]
    own = scale * cosine_of_smaller_angle(similarity, margin)
    there = ops.logical_and(positive, ops.any(negative, axis=1)[:, None])
    terms = ops.softplus(ops.where(there, of_negatives - own, 0.0))
    return mean(ops.where(there, terms, 0.0), positive)


@keras.saving.register_keras_serializable(package="keras_dml")
class TupletMargin(PairLoss):
    """Sets each positive against all negatives, with a margin on its angle.

    `L = mean log(1 + sum_{n in N_a} exp(s (cos(t_an) - cos(t_ap - m))))`

    over the positive pairs `(a, p)` of the batch, with the angle `t_ij` of
    two rows, the rows `N_a` of other classes, the margin `m` and the scale
    `s`. The margin makes a positive look nearer than it is, so that the loss
    does not insist on pairs that hardly fit: it is small, unlike others.

    It is one number for the whole batch of all replicas. So every row has the
    same value, and sample weights scale the whole loss.

    Args:
        margin: Float, `m` in radians, from 0 to below pi. Defaults to `0.1`,
            5.73 degrees.
        scale: Positive float, `s`. Defaults to `64.0`.
        **kwargs: `miner`, `average`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `margin` is not in [0, pi), `scale` is not positive, or
            `normalize` is `False`.

    Example:

    ```python
    model.compile("adam", loss=TupletMargin(margin=0.1, scale=64.0))
    ```

    Reference:
        Yu and Tao, "Deep Metric Learning with Tuplet Margin Loss", 2019.
    """

    of_unit_rows = True

    def __init__(self, margin=0.1, scale=64.0, **kwargs):
        super().__init__(**kwargs)
        self.margin = angle("margin", margin)
        self.scale = positive_number("scale", scale)

    def pair_loss(self, pairs: Pairs):
        return tuplet_margin_loss(
            self.similarities(pairs),
            *pairs.masks,
            margin=self.margin,
            scale=self.scale,
            mean=self.mean(pairs),
        )
