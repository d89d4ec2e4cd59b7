"""A miner of pairs on the wrong side of a margin."""

import keras
from keras import ops

from keras_dml.checks import finite_number
from keras_dml.miners.base import Miner
from keras_dml.ops.distances import metric_name
from keras_dml.ops.pairs import Pairs, pair_distances


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class PairMargin(Miner):
    """Chooses far positives and near negatives.

    A positive stays if its distance is more than `positive_margin`, a
    negative if its distance is less than `negative_margin`.

    Args:
        positive_margin: Float. Defaults to `0.2`.
        negative_margin: Float. Defaults to `0.8`.
        distance: What compares two rows, as `similarity` of
            `keras_dml.losses.PairLoss`. Defaults to `"euclidean"`.

    Raises:
        ValueError: If a margin is not finite or `distance` is unknown.

    Example:

    >>> miner = PairMargin(negative_margin=0.6)
    >>> loss = keras_dml.losses.Contrastive(miner=miner)
    """

    def __init__(
        self, positive_margin=0.2, negative_margin=0.8, distance="euclidean"
    ):
        self.positive_margin = finite_number("positive_margin", positive_margin)
        self.negative_margin = finite_number("negative_margin", negative_margin)
        self.distance = metric_name("distance", distance)

    def mine(self, pairs: Pairs):
        distance = pair_distances(pairs, self.distance)
        return (
            ops.logical_and(pairs.positive, distance > self.positive_margin),
            ops.logical_and(pairs.negative, distance < self.negative_margin),
        )
