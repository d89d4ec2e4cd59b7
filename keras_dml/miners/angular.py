"""A miner of triplets by the angle at their negative."""

import math

import keras
from keras import ops

from keras_dml.checks import in_interval
from keras_dml.miners.base import TripletMiner, of_positive
from keras_dml.ops.pairs import Pairs, pair_distances


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class Angular(TripletMiner):
    """Chooses triplets with a large angle at the negative.

    `atan(|a - p| / (2 |n - c|)) > angle`, with the middle `c` of anchor and
    positive.

    Args:
        angle: Float in degrees, between 0 and 90. Defaults to `20.0`.

    Raises:
        ValueError: If `angle` is out of range.

    Example:

    >>> loss = keras_dml.losses.Triplet(mining="all", miner=Angular(35.0))

    Reference:
        Wang et al., "Deep Metric Learning with Angular Loss", 2017,
        equation 5.
    """

    def __init__(self, angle=20.0):
        self.angle = in_interval("angle", angle, 0, 90)

    def chooser(self, pairs: Pairs):
        from_anchor = pair_distances(pairs, "squared_euclidean")
        slope = math.tan(math.radians(self.angle)) ** 2

        def chooses(is_positive):
            place = ops.cast(is_positive, from_anchor.dtype)
            rows = pairs.with_rows(ops.matmul(place, pairs.references))
            from_positive = pair_distances(rows, "squared_euclidean")
            side = of_positive(from_anchor, is_positive)
            to_middle = 0.5 * (from_anchor + from_positive) - 0.25 * side
            return side > 4.0 * slope * to_middle

        return chooses
