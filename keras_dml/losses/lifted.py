"""Lifted structure loss in its three common forms."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.checks import boolean, finite_number, one_of, positive_number
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.average import ALL
from keras_dml.ops.pairs import Pairs, rows_with_both
from keras_dml.ops.reductions import log_sum_exp

FORMS = ("similarity", "distance", "pairs")
# The logarithm of a sum of nothing, with finite gradients.
_NOTHING = -1e30


def lifted_loss(
    similarity,
    positive,
    negative,
    margin=0.5,
    positive_scale=1.0,
    negative_scale=1.0,
    hinge=True,
):
    """Adds the soft maxima of the positive and negative terms of each row.

    Args:
        similarity: Float tensor `(rows, columns)`, or minus the distances.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        margin: Float, `l` in `LiftedStructure`. Defaults to `0.5`.
        positive_scale: Float, `a`. Defaults to `1.0`.
        negative_scale: Float, `b`. Defaults to `1.0`.
        hinge: Boolean, whether rows below zero count as zero. Defaults to
            `True`.

    Returns:
        Tensor `(rows,)`; zero for a row without a positive or a negative.

    Example:

    >>> similarity = np.array([[1.0, 0.5, 0.25]])
    >>> positive = np.array([[False, True, False]])
    >>> negative = np.array([[False, False, True]])
    >>> float(lifted_loss(similarity, positive, negative)[0])
    0.25
    """
    values = (
        log_sum_exp(positive_scale * (margin - similarity), positive)
        / positive_scale
        + log_sum_exp(negative_scale * similarity, negative) / negative_scale
    )
    if hinge:
        values = ops.relu(values)
    return ops.where(rows_with_both(positive, negative), values, 0.0)


def lifted_pairs_loss(distance, positive, negative, margin=1.0, mean=ALL):
    """Compares every positive pair with the negatives of both its rows.

    This is the original form of the loss.

    Args:
        distance: Float tensor `(rows, columns)`, where the columns are the
            rows of all replicas.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        margin: Float. Defaults to `1.0`.
        mean: Function that averages terms, such as a `keras_dml.ops.Average`.
            Defaults to that of all positive pairs.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the mean of
        `[J_ij]_+**2 / 2` over the positive pairs of all replicas, see
        `LiftedStructure`.

    Example:

    >>> distance = np.array([[0.0, 1, 2], [1, 0, 2], [2, 2, 0]], "float32")
    >>> other = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]], bool)
    >>> same = ~other & ~np.eye(3, dtype=bool)
    >>> loss = lifted_pairs_loss(distance, same, other)
    >>> print(np.round(ops.convert_to_numpy(loss), 2))
    [0.24 0.24 0.24]
    """
    of_row = ops.where(
        ops.any(negative, axis=1),
        log_sum_exp(margin - distance, negative),
        _NOTHING,
    )
    of_column = distribute.all_gather(of_row)
    # A miner may leave negatives to one of the rows.
    joint = ops.maximum(of_row[:, None], of_column[None, :])
    positive = ops.logical_and(positive, joint > _NOTHING)
    joint = ops.logaddexp(of_row[:, None], of_column[None, :]) + distance
    return mean(0.5 * ops.square(ops.relu(joint)), positive)


@keras.saving.register_keras_serializable(package="keras_dml")
class LiftedStructure(PairLoss):
    """Compares all positives and negatives of a row; the hardest weigh most.

    `form="similarity"`, with cosines `s`:

    `L_i = [1/a log sum_{P_i} exp(a (l - s_ij))`
    `+ 1/b log sum_{N_i} exp(b s_ij)]_+`

    `form="distance"` replaces `s` by minus the Euclidean distance, as
    `similarity="euclidean"` does. Rows
    without a positive or without a negative give zero and count in the mean.

    `form="pairs"` is the original loss, the mean of `[J_ij]_+**2 / 2` over
    all positive pairs with

    `J_ij = log(sum_{N_i} exp(l - d_ik) + sum_{N_j} exp(l - d_jk)) + d_ij`.

    It gives every row the same value, and has no scales and no mining.

    Args:
        form: `"similarity"`, `"distance"` or `"pairs"`. Defaults to
            `"similarity"`.
        margin: Float, `l`. Defaults to `0.5`.
        positive_scale: Positive float, `a`. Defaults to `1.0`.
        negative_scale: Positive float, `b`. Defaults to `1.0`.
        hinge: Boolean, whether a row below zero counts as zero. Defaults to
            `True`.
        mining_margin: Float, stands for the miner
            `keras_dml.miners.MultiSimilarity(mining_margin)` on the distances
            of the form, or `None` to use all pairs. Defaults to `None`.
        **kwargs: `normalize`, `miner`, `average`, `similarity`, `reduction`,
            `name` and `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `form` is unknown or contradicts `similarity`, a number
            is out of range, `form="pairs"` gets an argument that it does not
            use, or there are a mining margin and a miner.

    Example:

    ```python
    # LiftedStructLoss() of tensorflow-addons.
    loss = LiftedStructure(form="pairs", margin=1.0, normalize=False)
    ```

    Reference:
        Oh Song et al., "Deep Metric Learning via Lifted Structured Feature
        Embedding", 2016, equation 4; Hermans, Beyer and Leibe, "In Defense of
        the Triplet Loss", 2017, equation 8.
    """

    usual_average = None

    def __init__(
        self,
        form="similarity",
        margin=0.5,
        positive_scale=1.0,
        negative_scale=1.0,
        hinge=True,
        mining_margin=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.form = one_of("form", form, FORMS)
        if form == "distance":
            self._compare_by("form", "euclidean")
        elif form == "pairs":
            self.metric = self.similarity or "euclidean"
        self.margin = finite_number("margin", margin)
        self.positive_scale = positive_number("positive_scale", positive_scale)
        self.negative_scale = positive_number("negative_scale", negative_scale)
        self.hinge = boolean("hinge", hinge)
        self._set_mining_margin(mining_margin)
        self.within_batch = form == "pairs"
        if form == "pairs" and self.average is None:
            self._average = ALL
        given = (positive_scale, negative_scale, hinge, mining_margin)
        if form == "pairs" and given != (1.0, 1.0, True, None):
            raise ValueError(
                "`form='pairs'` has no `positive_scale`, `negative_scale`, "
                "`mining_margin` or `hinge=False`. Received: "
                f"positive_scale={positive_scale}, negative_scale="
                f"{negative_scale}, hinge={hinge}, mining_margin="
                f"{mining_margin}"
            )

    def pair_loss(self, pairs: Pairs):
        if self.form == "pairs":
            distance = self.distances(pairs)
            return lifted_pairs_loss(
                distance, *pairs.masks, self.margin, self.mean(pairs)
            )
        values = lifted_loss(
            self.similarities(pairs),
            *pairs.masks,
            margin=self.margin,
            positive_scale=self.positive_scale,
            negative_scale=self.negative_scale,
            hinge=self.hinge,
        )
        return self.mean(pairs)(values)
