"""Triplet loss with its common minings."""

import dataclasses

import keras
from keras import ops

from keras_dml.checks import boolean, finite_number, one_of
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.miners import (
    TripletMiner,
    margin_triplets,
    semi_hard_triplets,
)
from keras_dml.ops.average import Average, as_average
from keras_dml.ops.distances import metric_name
from keras_dml.ops.gradients import shared_slopes, with_slopes
from keras_dml.ops.pairs import (
    Pairs,
    over_positives,
    pair_similarities,
    rows_with_both,
)
from keras_dml.ops.reductions import count, masked_max, masked_min

BY_PAIR = ("semi_hard", "facenet", "all_semi_hard")
BY_ROW = ("hard", "easy")
# Every triplet, whatever its distances.
ALL = "all"


def triplet_loss(
    distance,
    positive,
    negative,
    margin=0.1,
    mining="semi_hard",
    average="non_zero",
    soft=False,
    between_columns=None,
    chooses=None,
    labels=None,
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
        average: `"non_zero"`, `"all"` or a `keras_dml.ops.Average`. Defaults to
            `"non_zero"`.
        soft: Boolean, see `Triplet`. Defaults to `False`.
        between_columns: Float tensor `(columns, columns)`, the distances of the
            columns with each other, for `swap` in `Triplet`: with `"all"`, the
            distance of a positive and a negative replaces that of the anchor
            and the negative where it is smaller. Defaults to `None`.
        chooses: Function that chooses the negatives of a positive, for the
            mining `"all"`, see `keras_dml.miners.TripletMiner`. Defaults to
            `None`, all negatives.
        labels: Integer tensor `(rows,)`, for an average with weights of the
            classes. Defaults to `None`.

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
    one_of("mining", mining, (*BY_PAIR, *BY_ROW, ALL))
    average = as_average(average)
    if mining in BY_ROW:
        valid = rows_with_both(positive, negative)
        choose = masked_max if mining == "hard" else masked_min
        excess = choose(distance, positive) - masked_min(distance, negative)
        excess = ops.where(valid, excess, 0.0)
        values = ops.softplus(excess) if soft else ops.relu(excess + margin)
        return average(values, valid, labels)
    if mining in BY_PAIR:
        fixed = ops.stop_gradient(distance)
        chooses = _chooser(fixed, negative, margin, mining)
    totals, number = _sum_triplets(
        distance,
        between_columns,
        positive,
        negative,
        chooses,
        margin,
        soft,
        average,
    )
    unweighted = dataclasses.replace(average, class_weights=None)
    if mining in BY_PAIR and unweighted == Average():
        # Pairs without a triplet count, too.
        any_negative = ops.any(negative, axis=1, keepdims=True)
        pairs = ops.logical_and(positive, any_negative)
        number = count(pairs, distance.dtype)
    return average.of_sums(totals, number, labels)


def _chooser(distance, negative, margin, mining):
    if mining == "all_semi_hard":
        return margin_triplets(distance, margin, "semi_hard")
    return semi_hard_triplets(distance, negative, mining == "facenet")


def _sum_triplets(
    distance,
    between_columns,
    positive,
    negative,
    chooses,
    margin,
    soft,
    average,
):
    """Adds the chosen triplets; a negative is near the anchor or the positive.

    Returns:
        The sum of the triplets of every row that count in the average, and
        the number of these.
    """
    dtype = distance.dtype
    fixed = ops.stop_gradient(distance)
    swap = between_columns is not None
    between = ops.stop_gradient(between_columns) if swap else fixed[:0]

    def step(state, own, there, itself):
        values, slopes, of_others, number = state
        itself = ops.logical_and(itself, there)
        weight = ops.cast(ops.logical_and(negative, there), dtype)
        if chooses is not None:
            weight = weight * ops.cast(chooses(itself), dtype)
        itself = ops.cast(itself, dtype)
        # The row of `between_columns` of each positive.
        from_positive = ops.matmul(itself, between) if swap else fixed
        excess = own - ops.minimum(fixed, from_positive)
        excess = excess if soft else excess + margin
        term = ops.softplus(excess) if soft else ops.relu(excess)
        weight = ops.where(average.counts(term), weight, 0.0)
        number = number + ops.sum(weight, axis=1)
        values = values + ops.sum(weight * term, axis=1)
        slope = ops.sigmoid(excess) if soft else ops.cast(excess > 0, dtype)
        slope = weight * slope
        if swap:
            swapped = ops.where(from_positive < fixed, slope, 0.0)
            # PyTorch would change with `+=` the zeros that the state shares.
            moved = ops.matmul(ops.transpose(itself), swapped)
            of_others, slopes = of_others - moved, slopes + swapped
        total = ops.sum(slope, axis=1, keepdims=True)
        slopes = slopes + total * itself - slope
        return values, slopes, of_others, number

    zeros = ops.zeros_like(fixed)
    none = zeros[:, 0]
    state = (none, zeros, ops.zeros_like(between), none)
    values, slopes, of_others, number = over_positives(
        fixed, positive, step, state
    )
    totals = with_slopes(values, slopes, distance)
    if swap:
        totals = totals + shared_slopes(of_others, between_columns, values)
    return totals, number


def check_triplet_miner(miner, mining: str) -> None:
    """Raises if both a miner and `mining` choose triplets.

    Args:
        miner: A miner or `None`.
        mining: String, see `Triplet`.

    Raises:
        ValueError: If they do.
    """
    if isinstance(miner, TripletMiner) and mining != ALL:
        raise ValueError(
            "`miner` of triplets needs `mining='all'`: the other minings "
            f"choose triplets, too. Received: mining={mining!r}, "
            f"miner={miner!r}"
        )


def with_triplets(miner, pairs: Pairs) -> Pairs | None:
    """Returns the pairs with the triplets that a miner of triplets chooses.

    Args:
        miner: A miner or `None`.
        pairs: The `Pairs`.

    Returns:
        The pairs; `None` if the miner chooses no triplets.
    """
    if not isinstance(miner, TripletMiner):
        return None
    pairs = pairs._replace(similarity=pair_similarities(pairs))
    return miner.with_triplets(pairs)


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
        distance: What compares two rows, another name of the argument
            `similarity`. Defaults to `"cosine"`.
        average: `"non_zero"` for the mean over the triplets whose term is not
            zero; `"all"`, with or without weights of classes, which also
            counts positive pairs without a triplet, with the mining `"all"`
            all triplets; or as in `keras_dml.losses.PairLoss`. Defaults to
            `"non_zero"`.
        soft: Boolean, whether the term is `log(1 + exp(d_ap - d_an))`, for
            `"hard"`, `"easy"` and `"all"` only. Defaults to `False`.
        swap: Boolean, whether the smaller of `d_an` and `d_pn` stands for
            `d_an`, for `"all"` only. Defaults to `False`.
        **kwargs: `normalize`, `miner`, `similarity`, `reduction`, `name` and
            `dtype`, see `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If a name is unknown, `margin` is not finite, or `mining`
            does not allow `soft`, `swap` or a miner of triplets.

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

    usual_average = "non_zero"

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
        super().__init__(average=average, **kwargs)
        self.mining = one_of("mining", mining, (*BY_PAIR, *BY_ROW, ALL))
        self.distance = metric_name("distance", distance)
        self._compare_by("distance", distance)
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
        check_triplet_miner(self.miner, mining)
        self.margin = finite_number("margin", margin)
        self.soft = boolean("soft", soft)
        self.swap = boolean("swap", swap)
        self.within_batch = swap

    def mined(self, pairs: Pairs):
        return with_triplets(self.miner, pairs) or super().mined(pairs)

    def pair_loss(self, pairs: Pairs):
        distance = self.distances(pairs)
        return triplet_loss(
            distance,
            *pairs.masks,
            margin=self.margin,
            mining=self.mining,
            average=self._average,
            labels=pairs.labels,
            soft=self.soft,
            between_columns=self._between_columns(pairs, distance),
            chooses=pairs.triplets,
        )

    def _between_columns(self, pairs, distance):
        if not self.swap:
            return None
        columns = pairs.references
        if columns is pairs.embeddings:
            return distance
        return self.distances(pairs.with_rows(columns))
