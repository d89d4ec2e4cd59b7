"""A miner of the easiest or hardest pairs of each row."""

import keras
from keras import ops

from keras_dml.checks import one_of
from keras_dml.miners.base import Miner
from keras_dml.ops.distances import metric_name
from keras_dml.ops.pairs import (
    Pairs,
    pair_distances,
    rows_with_both,
)
from keras_dml.ops.reductions import masked_max, masked_min

STRATEGIES = ("easy", "semi_hard", "hard", "all")


def _farthest(distance, mask):
    return ops.logical_and(
        mask, ops.equal(distance, masked_max(distance, mask)[:, None])
    )


def _nearest(distance, mask):
    return _farthest(-distance, mask)


def _all(distance, mask):
    return mask


_POSITIVES = {"easy": _nearest, "hard": _farthest, "all": _all}
_NEGATIVES = {
    "easy": _farthest,
    "hard": _nearest,
    "semi_hard": _nearest,
    "all": _all,
}


def easy_hard_pairs(
    distance, positive, negative, positives="easy", negatives="semi_hard"
):
    """Returns the easiest or hardest pairs of each row, see `BatchEasyHard`.

    Args:
        distance: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        positives: String. Defaults to `"easy"`.
        negatives: String. Defaults to `"semi_hard"`.

    Returns:
        Two boolean tensors `(rows, columns)`: positive, negative.

    Example:

    >>> distance = np.array([[0.0, 0.5, 0.2, 0.8]])
    >>> positive = np.array([[False, True, False, False]])
    >>> negative = np.array([[False, False, True, True]])
    >>> _, chosen = easy_hard_pairs(distance, positive, negative)
    >>> ops.convert_to_numpy(chosen)
    array([[False, False, False,  True]])
    """
    if positives == "semi_hard":
        negative = _NEGATIVES[negatives](distance, negative)
        limit = masked_min(distance, negative)[:, None]
        positive = _farthest(
            distance, ops.logical_and(positive, distance < limit)
        )
    else:
        positive = _POSITIVES[positives](distance, positive)
        if negatives == "semi_hard":
            limit = masked_max(distance, positive)[:, None]
            negative = ops.logical_and(negative, distance > limit)
        negative = _NEGATIVES[negatives](distance, negative)
    if "all" in (positives, negatives):
        return positive, negative
    both = rows_with_both(positive, negative)[:, None]
    return ops.logical_and(positive, both), ops.logical_and(negative, both)


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class BatchEasyHard(Miner):
    """Chooses for each row one positive and one negative, easy or hard.

    - `"easy"`: the nearest positive, the farthest negative.
    - `"hard"`: the farthest positive, the nearest negative.
    - `"semi_hard"`: the hardest negative that is farther than the chosen
      positive; or the hardest positive that is nearer than the chosen
      negative.
    - `"all"`: all of them.

    A row without such a pair of either kind has none, unless one of both is
    `"all"`. Of pairs at the same distance all are chosen.

    Args:
        positives: String. Defaults to `"easy"`.
        negatives: String. Defaults to `"semi_hard"`.
        distance: What compares two rows, as `similarity` of
            `keras_dml.losses.PairLoss`. Defaults to `"euclidean"`.

    Raises:
        ValueError: If a name is unknown, or `"semi_hard"` meets another than
            `"easy"` or `"hard"`.

    Example:

    >>> loss = keras_dml.losses.Contrastive(miner=BatchEasyHard())

    Reference:
        Xuan, Stylianou and Pless, "Improved Embeddings with Easy Positive
        Triplet Mining", 2020, section 3.
    """

    def __init__(
        self, positives="easy", negatives="semi_hard", distance="euclidean"
    ):
        self.positives = one_of("positives", positives, STRATEGIES)
        self.negatives = one_of("negatives", negatives, STRATEGIES)
        self.distance = metric_name("distance", distance)
        chosen = {positives, negatives}
        if "semi_hard" in chosen and not chosen & {"easy", "hard"}:
            raise ValueError(
                "`positives` or `negatives` must be 'easy' or 'hard' where the "
                "other is 'semi_hard', which compares with one pair. Received: "
                f"positives={positives!r}, negatives={negatives!r}"
            )

    def mine(self, pairs: Pairs):
        return easy_hard_pairs(
            pair_distances(pairs, self.distance),
            *pairs.masks,
            self.positives,
            self.negatives,
        )
