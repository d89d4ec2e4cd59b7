"""The miner of the multi-similarity loss."""

import keras
from keras import ops

from keras_dml.checks import finite_number
from keras_dml.miners.base import Miner
from keras_dml.ops.distances import metric_name
from keras_dml.ops.pairs import Pairs, pair_distances
from keras_dml.ops.reductions import masked_max, masked_min


def informative_pairs(distance, positive, negative, margin=0.1):
    """Drops the pairs that are easy by more than a margin.

    Args:
        distance: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        margin: Float. Defaults to `0.1`.

    Returns:
        Two boolean tensors `(rows, columns)`: positive, negative.

    Example:

    >>> distance = np.array([[0.0, 0.5, 0.55, 0.8]])
    >>> positive = np.array([[False, True, False, False]])
    >>> negative = np.array([[False, False, True, True]])
    >>> _, chosen = informative_pairs(distance, positive, negative)
    >>> ops.convert_to_numpy(chosen)
    array([[False, False,  True, False]])
    """
    nearest = masked_min(distance, negative)[:, None]
    farthest = masked_max(distance, positive)[:, None]
    return (
        ops.logical_and(positive, distance + margin > nearest),
        ops.logical_and(negative, distance - margin < farthest),
    )


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class MultiSimilarity(Miner):
    """Drops the pairs that are easy by more than a margin.

    A negative stays if `d_ij - e < max_{P_i} d`, a positive if
    `d_ij + e > min_{N_i} d`, with the distances `d` of row `i`, its positives
    `P_i` and its negatives `N_i`. A row keeps pairs of both kinds or none. The
    argument `mining_margin` of the losses `MultiSimilarity` and
    `LiftedStructure` is this miner.

    Args:
        margin: Float, `e`. Defaults to `0.1`.
        distance: What compares two rows, as `similarity` of
            `keras_dml.losses.PairLoss`. Defaults to `"cosine"`, the paper's.

    Raises:
        ValueError: If `margin` is not finite or `distance` is unknown.

    Example:

    >>> miner = MultiSimilarity(margin=0.2)
    >>> loss = keras_dml.losses.Contrastive(miner=miner)

    Reference:
        Wang et al., "Multi-Similarity Loss with General Pair Weighting for
        Deep Metric Learning", 2019, equations 8 and 9.
    """

    def __init__(self, margin=0.1, distance="cosine"):
        self.margin = finite_number("margin", margin)
        self.distance = metric_name("distance", distance)

    def mine(self, pairs: Pairs):
        distance = pair_distances(pairs, self.distance)
        return informative_pairs(distance, *pairs.masks, self.margin)
