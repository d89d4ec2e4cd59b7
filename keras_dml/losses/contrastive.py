"""Contrastive loss on similarities or on distances."""

import keras
from keras import ops

from keras_dml.checks import finite_number, one_of, positive_number
from keras_dml.losses.base import PairLoss
from keras_dml.ops.pairs import Pairs, pair_distances, pair_similarities
from keras_dml.ops.reductions import batch_mean, count, masked_sum, rounding

# The default margins of positives and negatives.
MARGINS = {"similarity": (1.0, 0.5), "euclidean": (0.0, 1.0)}


def contrastive_loss(too_far, too_near, positive, negative, power=1.0):
    """Adds the mean of the non-zero positive terms and of the negative ones.

    Args:
        too_far: Float tensor `(rows, columns)`, by how much a pair is farther
            than a positive may be; values below zero count as zero.
        too_near: Float tensor `(rows, columns)`, by how much a pair is closer
            than a negative may be; values below zero count as zero.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        power: Float, the power of every term. Defaults to `1.0`.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the sum of the two
        means over the batch of all replicas.

    Example:

    >>> distance = np.array([[0.0, 0.25], [0.25, 0.0]])
    >>> positive = np.array([[False, True], [True, False]])
    >>> nothing = np.zeros((2, 2), bool)
    >>> float(contrastive_loss(distance, -distance, positive, nothing)[0])
    0.25
    """
    return _mean_of_active(too_far, positive, power) + _mean_of_active(
        too_near, negative, power
    )


def _mean_of_active(excess, mask, power):
    # The rounding error of equal rows must not count as a term above zero.
    mask = ops.logical_and(mask, excess > rounding(excess))
    if power != 1.0:
        # Outside of the mask the power may have no finite derivative.
        excess = ops.where(mask, excess, 1.0)
        excess = ops.power(excess, power)
    return batch_mean(masked_sum(excess, mask), count(mask, excess.dtype))


@keras.saving.register_keras_serializable(package="keras_dml")
class Contrastive(PairLoss):
    """Pulls positives together and pushes negatives beyond a margin.

    `L = mean_P [s+ - s_ij]_+ + mean_N [s_ij - s-]_+` with cosines `s_ij`, or
    `L = mean_P [d_ij - d+]_+ + mean_N [d- - d_ij]_+` with Euclidean distances
    `d_ij`. Each mean is over the pairs of the batch whose term is not zero, so
    that the many easy negatives do not hide the few hard ones. With the
    default `s+ = 1` all positives count, and their terms have the gradient of
    `-s_ij`.

    The loss is one number for the whole batch of all replicas. So every row
    has the same value, and sample weights scale the whole loss.

    Args:
        form: `"similarity"` or `"euclidean"`. Defaults to `"similarity"`.
        positive_margin: Float, `s+` or `d+`. Defaults to `None`, `1.0` for
            similarities and `0.0` for distances.
        negative_margin: Float, `s-` or `d-`. Defaults to `None`, `0.5` for
            similarities and `1.0` for distances.
        power: Positive float, the power of every term; the original paper and
            tensorflow-addons use `2.0`. Defaults to `1.0`.
        **kwargs: `normalize`, `miner`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `form` is unknown or a number is out of range.

    Example:

    ```python
    model.compile("adam", loss=Contrastive(negative_margin=0.5))
    ```

    Reference:
        Hadsell, Chopra and LeCun, "Dimensionality Reduction by Learning an
        Invariant Mapping", 2006, equation 4.
    """

    def __init__(
        self,
        form="similarity",
        positive_margin=None,
        negative_margin=None,
        power=1.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.form = one_of("form", form, MARGINS)
        if positive_margin is None:
            positive_margin = MARGINS[form][0]
        if negative_margin is None:
            negative_margin = MARGINS[form][1]
        self.positive_margin = finite_number("positive_margin", positive_margin)
        self.negative_margin = finite_number("negative_margin", negative_margin)
        self.power = positive_number("power", power)

    def pair_loss(self, pairs: Pairs):
        similar = self.form == "similarity"
        values = pair_similarities(pairs) if similar else pair_distances(pairs)
        sign = 1.0 if similar else -1.0
        return contrastive_loss(
            sign * (self.positive_margin - values),
            sign * (values - self.negative_margin),
            *pairs.masks,
            power=self.power,
        )
