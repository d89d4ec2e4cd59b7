"""Triplet loss with its common minings."""

import keras
from keras import ops

from keras_dml.checks import boolean, finite_number, one_of
from keras_dml.losses.base import PairLoss
from keras_dml.ops.gradients import shared_slopes, with_slopes
from keras_dml.ops.pairs import (
    DISTANCES,
    Pairs,
    over_positives,
    pair_distances,
    rows_with_both,
)
from keras_dml.ops.reductions import batch_mean, count, masked_max, masked_min

BY_PAIR = ("semi_hard", "facenet", "all_semi_hard")
BY_ROW = ("hard", "easy")
# Every triplet, whatever its distances.
ALL = "all"
AVERAGES = ("non_zero", "all")


def triplet_loss(
    distance,
    positive,
    negative,
    margin=0.1,
    mining="semi_hard",
    average="non_zero",
    soft=False,
    between_columns=None,
):
    """Averages the mined triplets of a batch, see `Triplet`.

    Memory is a few matrices `(rows, columns)`; the time grows with the
    largest number of positives of a row.

    Args:
        distance: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        margin: Float. Defaults to `0.1`.
        mining: String, see `Triplet`. Defaults to `"semi_hard"`.
        average: `"non_zero"` or `"all"`. Defaults to `"non_zero"`.
        soft: Boolean, see `Triplet`. Defaults to `False`.
        between_columns: Float tensor `(columns, columns)`, the distances of the
            columns with each other, for `swap` in `Triplet`: with `"all"`, the
            distance of a positive and a negative replaces that of the anchor
            and the negative where it is smaller. Defaults to `None`.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the mean over the
        batch of all replicas.

    Example:

    >>> distance = np.array([[0.0, 0.5, 0.25]])
    >>> positive = np.array([[False, True, False]])
    >>> negative = np.array([[False, False, True]])
    >>> float(triplet_loss(distance, positive, negative, mining="hard")[0])
    0.35
    """
    if mining in BY_ROW:
        valid = rows_with_both(positive, negative)
        choose = masked_max if mining == "hard" else masked_min
        excess = choose(distance, positive) - masked_min(distance, negative)
        excess = ops.where(valid, excess, 0.0)
        values = ops.softplus(excess) if soft else ops.relu(excess + margin)
        totals = ops.where(valid, values, 0.0)
        active, candidates = totals > 0, valid
    elif mining == ALL:
        totals, active, candidates = _all_triplets(
            distance, between_columns, positive, negative, margin, soft
        )
    else:
        weights, active, candidates = _mine(
            ops.stop_gradient(distance), positive, negative, margin, mining
        )
        # The sum of `d_ap - d_an + margin` over the active triplets.
        totals = ops.sum(weights * distance, axis=1) + margin * active
    return batch_mean(totals, active if average == "non_zero" else candidates)


def _mine(distance, positive, negative, margin, mining):
    """Mines triplets for each positive pair.

    Returns:
        How often the active triplets add the distance of each pair, minus how
        often they subtract it, `(rows, columns)`; the number of active
        triplets of every row; and the number of its positive pairs.
    """
    dtype = distance.dtype
    any_negative = ops.any(negative, axis=1, keepdims=True)
    positive = ops.logical_and(positive, any_negative)
    farthest = ops.logical_and(
        negative,
        ops.equal(distance, masked_max(distance, negative)[:, None]),
    )

    def step(state, own, there, itself):
        weights, active = state
        chosen = ops.logical_and(negative, distance > own)
        if mining == "all_semi_hard":
            chosen = ops.logical_and(chosen, distance <= own + margin)
        else:
            nearest_farther = masked_min(distance, chosen)[:, None]
            none_farther = ops.logical_not(ops.any(chosen, axis=1))[:, None]
            chosen = ops.logical_and(
                chosen, ops.equal(distance, nearest_farther)
            )
            if mining == "facenet":
                fallback = ops.logical_and(farthest, none_farther)
                chosen = ops.logical_or(chosen, fallback)
            chosen = ops.logical_and(chosen, distance < own + margin)
        chosen = ops.cast(ops.logical_and(chosen, there), dtype)
        triplets = ops.sum(chosen, axis=1, keepdims=True)
        if mining != "all_semi_hard":
            # Negatives at the same distance share one triplet.
            ties = ops.maximum(triplets, ops.ones_like(triplets))
            chosen, triplets = chosen / ties, triplets / ties
        added = triplets * ops.cast(itself, dtype)
        return weights + added - chosen, active + triplets[:, 0]

    zeros = ops.zeros_like(distance)
    weights, active = over_positives(
        distance, positive, step, (zeros, zeros[:, 0])
    )
    return weights, active, count(positive, dtype)


def _all_triplets(distance, between_columns, positive, negative, margin, soft):
    """Adds all triplets, whose negative is near the anchor or the positive.

    Returns:
        The sum of the triplets of every row, the number of those that are not
        zero, and the number of all.
    """
    dtype = distance.dtype
    fixed = ops.stop_gradient(distance)
    swap = between_columns is not None
    between = ops.stop_gradient(between_columns) if swap else fixed[:0]

    def step(state, own, there, itself):
        values, slopes, of_others, active = state
        itself = ops.cast(ops.logical_and(itself, there), dtype)
        # The row of `between_columns` of each positive.
        from_positive = ops.matmul(itself, between) if swap else fixed
        excess = own - ops.minimum(fixed, from_positive)
        excess = excess if soft else excess + margin
        chosen = ops.logical_and(negative, there)
        if not soft:
            chosen = ops.logical_and(chosen, excess > 0)
        term = ops.softplus(excess) if soft else excess
        weight = ops.sigmoid(excess) if soft else ops.ones_like(excess)
        weight = ops.where(chosen, weight, 0.0)
        if swap:
            swapped = ops.where(from_positive < fixed, weight, 0.0)
            # PyTorch would change with `+=` the zeros that the state shares.
            moved = ops.matmul(ops.transpose(itself), swapped)
            of_others, slopes = of_others - moved, slopes + swapped
        total = ops.sum(weight, axis=1, keepdims=True)
        return (
            values + ops.sum(ops.where(chosen, term, 0.0), axis=1),
            slopes + total * itself - weight,
            of_others,
            active + count(chosen, dtype),
        )

    zeros = ops.zeros_like(fixed)
    state = (zeros[:, 0], zeros, ops.zeros_like(between), zeros[:, 0])
    values, slopes, of_others, active = over_positives(
        fixed, positive, step, state
    )
    totals = with_slopes(values, slopes, distance)
    if swap:
        totals = totals + shared_slopes(of_others, between_columns, values)
    return totals, active, count(positive, dtype) * count(negative, dtype)


@keras.saving.register_keras_serializable(package="keras_dml")
class Triplet(PairLoss):
    """Pulls an anchor closer to a positive than to a negative, by a margin.

    `L = mean [d_ap - d_an + m]_+` over triplets of an anchor `a`, a positive
    `p` and a negative `n`. `mining` chooses the triplets:

    - `"semi_hard"`: for each positive pair the nearest negative that is
      farther than the positive. A pair without such a negative has no triplet.
    - `"facenet"`: the same, but a pair without such a negative takes the
      farthest negative of the anchor.
    - `"all_semi_hard"`: all triplets with `0 < d_an - d_ap <= m`.
    - `"all"`: all triplets.
    - `"hard"`: for each anchor its farthest positive and nearest negative.
    - `"easy"`: for each anchor its nearest positive and nearest negative.

    With the cosine distance `1 - s`, the term is `[s_an - s_ap + m]_+`. A row
    without a positive or without a negative has no triplet. The loss is one
    number for the whole batch of all replicas. So every row has the same
    value, and sample weights scale the whole loss.

    Args:
        margin: Float, `m`. Defaults to `0.1`.
        mining: String. Defaults to `"semi_hard"`.
        distance: `"cosine"`, `"euclidean"` or `"squared_euclidean"`. Defaults
            to `"cosine"`.
        average: `"non_zero"` for the mean over the triplets whose term is not
            zero, or `"all"`, which also counts positive pairs without a
            triplet; with the mining `"all"` it counts all triplets. Defaults
            to `"non_zero"`.
        soft: Boolean, whether the term is `log(1 + exp(d_ap - d_an))`, for
            `"hard"`, `"easy"` and `"all"` only. Defaults to `False`.
        swap: Boolean, whether the smaller of `d_an` and `d_pn` stands for
            `d_an`, for `"all"` only. Defaults to `False`.
        **kwargs: `normalize`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If a name is unknown, `margin` is not finite, or `mining`
            does not allow `soft` or `swap`.

    Example:

    ```python
    # TripletSemiHardLoss() and TripletHardLoss() of tensorflow-addons.
    arguments = {"distance": "euclidean", "normalize": False, "average": "all"}
    semi_hard = Triplet(margin=1.0, mining="facenet", **arguments)
    hard = Triplet(margin=1.0, mining="hard", **arguments)
    ```

    Reference:
        Schroff, Kalenichenko and Philbin, "FaceNet", 2015, equations 2 and 4;
        Hermans, Beyer and Leibe, "In Defense of the Triplet Loss", 2017,
        equation 5; Balntas et al., "Learning Local Feature Descriptors with
        Triplets and Shallow Convolutional Neural Networks", 2016 (swap); Xuan,
        Stylianou and Pless, "Improved Embeddings with Easy Positive Triplet
        Mining", 2020.
    """

    def __init__(
        self,
        margin=0.1,
        mining="semi_hard",
        distance="cosine",
        average="non_zero",
        soft=False,
        swap=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.mining = one_of("mining", mining, (*BY_PAIR, *BY_ROW, ALL))
        self.distance = one_of("distance", distance, DISTANCES)
        self.average = one_of("average", average, AVERAGES)
        if soft and mining in BY_PAIR:
            raise ValueError(
                "`soft=True` needs `mining` 'hard', 'easy' or 'all': the other "
                "minings choose triplets by the margin. Received: "
                f"mining={mining!r}"
            )
        if swap and mining != ALL:
            raise ValueError(
                "`swap=True` needs `mining='all'`: the other minings choose "
                f"negatives near the anchor. Received: mining={mining!r}"
            )
        self.margin = finite_number("margin", margin)
        self.soft = boolean("soft", soft)
        self.swap = boolean("swap", swap)
        self.within_batch = swap

    def pair_loss(self, pairs: Pairs):
        distance = pair_distances(pairs, self.distance)
        return triplet_loss(
            distance,
            *pairs.masks,
            margin=self.margin,
            mining=self.mining,
            average=self.average,
            soft=self.soft,
            between_columns=self._between_columns(pairs, distance),
        )

    def _between_columns(self, pairs, distance):
        if not self.swap:
            return None
        columns = pairs.references
        if columns is pairs.embeddings:
            return distance
        own = pairs._replace(embeddings=columns)
        return pair_distances(own, self.distance)
