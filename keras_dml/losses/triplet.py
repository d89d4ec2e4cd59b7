"""Triplet loss with its common minings."""

import keras
from keras import ops

from keras_dml.checks import boolean, finite_number, one_of
from keras_dml.losses.base import PairLoss
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
AVERAGES = ("non_zero", "all")


def triplet_loss(
    distance,
    positive,
    negative,
    margin=0.1,
    mining="semi_hard",
    average="non_zero",
    soft=False,
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
            triplet. Defaults to `"non_zero"`.
        soft: Boolean, whether the term is `log(1 + exp(d_ap - d_an))`, for
            `"hard"` and `"easy"` only. Defaults to `False`.
        **kwargs: `normalize`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If a name is unknown, `margin` is not finite, or `mining`
            does not allow `soft`.

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
        equation 5; Xuan, Stylianou and Pless, "Improved Embeddings with Easy
        Positive Triplet Mining", 2020.
    """

    def __init__(
        self,
        margin=0.1,
        mining="semi_hard",
        distance="cosine",
        average="non_zero",
        soft=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.mining = one_of("mining", mining, BY_PAIR + BY_ROW)
        self.distance = one_of("distance", distance, DISTANCES)
        self.average = one_of("average", average, AVERAGES)
        if soft and mining not in BY_ROW:
            raise ValueError(
                "`soft=True` needs `mining` 'hard' or 'easy': the other "
                "minings choose triplets by the margin. Received: "
                f"mining={mining!r}"
            )
        self.margin = finite_number("margin", margin)
        self.soft = boolean("soft", soft)

    def pair_loss(self, pairs: Pairs):
        return triplet_loss(
            pair_distances(pairs, self.distance),
            *pairs.masks,
            margin=self.margin,
            mining=self.mining,
            average=self.average,
            soft=self.soft,
        )
