"""Contrastive loss on similarities or on distances."""

import keras
from keras import ops

from keras_dml.checks import (
    finite_number,
    not_negative,
    one_of,
    positive_number,
)
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.average import NON_ZERO
from keras_dml.ops.distances import is_distance
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import rounding

FORMS = {"similarity": "cosine", "euclidean": "euclidean"}
# The default margins of positives and negatives, of similarities and distances.
MARGINS = {False: (1.0, 0.5), True: (0.0, 1.0)}


def contrastive_loss(
    too_far,
    too_near,
    positive,
    negative,
    power=1.0,
    positive_weight=1.0,
    negative_weight=1.0,
    mean=NON_ZERO,
):
    """Adds the means of the positive terms and of the negative ones.

    Args:
        too_far: Float tensor `(rows, columns)`, by how much a pair is farther
            than a positive may be; values below zero count as zero.
        too_near: Float tensor `(rows, columns)`, by how much a pair is closer
            than a negative may be; values below zero count as zero.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        power: Float, the power of every term. Defaults to `1.0`.
        positive_weight: Float. Defaults to `1.0`.
        negative_weight: Float. Defaults to `1.0`.
        mean: Function that averages terms, such as a `keras_dml.ops.Average`.
            Defaults to that of the terms that are not zero.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the weighted sum of
        the two means over the batch of all replicas.

    Example:

    >>> distance = np.array([[0.0, 0.25], [0.25, 0.0]])
    >>> positive = np.array([[False, True], [True, False]])
    >>> nothing = np.zeros((2, 2), bool)
    >>> float(contrastive_loss(distance, -distance, positive, nothing)[0])
    0.25
    """
    return positive_weight * mean(
        _terms(too_far, power), positive
    ) + negative_weight * mean(_terms(too_near, power), negative)


def _terms(excess, power):
    # The rounding error of equal rows must not count as a term above zero.
    active = excess > rounding(excess)
    if power != 1.0:
        # Elsewhere the power may have no finite derivative.
        excess = ops.power(ops.where(active, excess, 1.0), power)
    return ops.where(active, excess, 0.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class Contrastive(PairLoss):
    """Pulls positives together and pushes negatives beyond a margin.

    `L = w+ mean_P [s+ - s_ij]_+ + w- mean_N [s_ij - s-]_+` with cosines `s_ij`,
    or `L = w+ mean_P [d_ij - d+]_+ + w- mean_N [d- - d_ij]_+` with Euclidean
    distances `d_ij`. Each mean is over the pairs of the batch whose term is not
    zero, so that the many easy negatives do not hide the few hard ones. With
    the default `s+ = 1` all positives count, and their terms have the gradient
    of `-s_ij`.

    The loss is one number for the whole batch of all replicas. So every row
    has the same value, and sample weights scale the whole loss.

    Args:
        form: `"similarity"` or `"euclidean"`, which stand for `similarity`
            `"cosine"` and `"euclidean"`. Defaults to `"similarity"`.
        positive_margin: Float, `s+` or `d+`. Defaults to `None`, `1.0` for
            similarities and `0.0` for distances.
        negative_margin: Float, `s-` or `d-`. Defaults to `None`, `0.5` for
            similarities and `1.0` for distances.
        power: Positive float, the power of every term; the original paper and
            tensorflow-addons use `2.0`. Defaults to `1.0`.
        positive_weight: Float, `w+`, at least 0. Defaults to `1.0`.
        negative_weight: Float, `w-`, at least 0. Defaults to `1.0`.
        **kwargs: `normalize`, `miner`, `average`, `similarity`, `reduction`,
            `name` and `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `form` is unknown or contradicts `similarity`, or a
            number is out of range.

    Example:

    ```python
    model.compile("adam", loss=Contrastive(negative_margin=0.5))
    ```

    Reference:
        Hadsell, Chopra and LeCun, "Dimensionality Reduction by Learning an
        Invariant Mapping", 2006, equation 4; with the margins 0.9 and 0.5 it
        is the threshold-consistent margin that Zhang et al., "Threshold-
        Consistent Margin Loss for Open-World Deep Metric Learning", 2024, add
        to another loss.
    """

    usual_average = "non_zero"

    def __init__(
        self,
        form="similarity",
        positive_margin=None,
        negative_margin=None,
        power=1.0,
        positive_weight=1.0,
        negative_weight=1.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.form = one_of("form", form, FORMS)
        self._compare_by("form", FORMS[form])
        usual = MARGINS[is_distance(self.metric)]
        if positive_margin is None:
            positive_margin = usual[0]
        if negative_margin is None:
            negative_margin = usual[1]
        self.positive_margin = finite_number("positive_margin", positive_margin)
        self.negative_margin = finite_number("negative_margin", negative_margin)
        self.power = positive_number("power", power)
        self.positive_weight = not_negative("positive_weight", positive_weight)
        self.negative_weight = not_negative("negative_weight", negative_weight)

    def pair_loss(self, pairs: Pairs):
        if is_distance(self.metric):
            values = self.distances(pairs)
            too_far = values - self.positive_margin
            too_near = self.negative_margin - values
        else:
            values = self.similarities(pairs)
            too_far = self.positive_margin - values
            too_near = values - self.negative_margin
        return contrastive_loss(
            too_far,
            too_near,
            *pairs.masks,
            power=self.power,
            positive_weight=self.positive_weight,
            negative_weight=self.negative_weight,
            mean=self.mean(pairs),
        )
