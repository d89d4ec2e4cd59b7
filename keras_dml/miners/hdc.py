"""A miner of the hardest share of all pairs."""

import math
from fractions import Fraction

import keras
from keras import ops

from keras_dml.checks import in_interval
from keras_dml.miners.base import Miner
from keras_dml.ops.distances import metric_name
from keras_dml.ops.largest import largest_of_groups
from keras_dml.ops.pairs import Pairs, pair_distances


def hardest_pairs(distance, positive, negative, share=0.5):
    """Returns the hardest share of the positives and of the negatives.

    Args:
        distance: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        share: Float in (0, 1], of the pairs of all replicas. Defaults to
            `0.5`.

    Returns:
        Two boolean tensors `(rows, columns)`: positive, negative.

    Example:

    >>> distance = np.array([[0.0, 0.5, 0.2, 0.8]])
    >>> positive = np.array([[False, True, False, False]])
    >>> negative = np.array([[False, False, True, True]])
    >>> _, chosen = hardest_pairs(distance, positive, negative)
    >>> ops.convert_to_numpy(chosen)
    array([[False, False,  True, False]])
    """
    scores = ops.where(positive, distance, -distance)
    group = ops.where(positive, 0, ops.where(negative, 1, 2))
    chosen = largest_of_groups(scores, group, 2, _share_of(share))
    return ops.logical_and(positive, chosen), ops.logical_and(negative, chosen)


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class HDC(Miner):
    """Chooses the farthest positives and the nearest negatives of a batch.

    Of `n` pairs of a kind, in all rows together, `ceil(share n)` stay, and
    those at the same distance as the last.

    Args:
        share: Float in (0, 1]. Defaults to `0.5`.
        distance: What compares two rows, as `similarity` of
            `keras_dml.losses.PairLoss`. Defaults to `"euclidean"`.

    Raises:
        ValueError: If `share` is out of range or `distance` is unknown.

    Example:

    >>> loss = keras_dml.losses.Contrastive(miner=HDC(share=0.25))

    Reference:
        Yuan, Yang and Zhang, "Hard-Aware Deeply Cascaded Embedding", 2017,
        section 3.2.
    """

    def __init__(self, share=0.5, distance="euclidean"):
        self.share = in_interval("share", share, 0, 1, closed="right")
        self.distance = metric_name("distance", distance)

    def mine(self, pairs: Pairs):
        distance = pair_distances(pairs, self.distance)
        return hardest_pairs(distance, *pairs.masks, self.share)


def _share_of(share):
    """Returns the function `ceil(share * n)` of int32 numbers, exact."""
    # The largest denominator with which no product exceeds int32.
    limit = min(math.isqrt(int(2**30 / share)), 2**30)
    part = Fraction(share).limit_denominator(limit)

    def wanted(number):
        whole, rest = number // part.denominator, number % part.denominator
        rest = -(-rest * part.numerator // part.denominator)
        wanted = whole * part.numerator + rest
        return ops.maximum(wanted, ops.minimum(number, 1))

    return wanted
