"""A miner that takes as many pairs at every distance."""

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.checks import one_of, positive_integer
from keras_dml.miners.base import Miner
from keras_dml.ops.pairs import DISTANCES, Pairs, pair_distances
from keras_dml.ops.sampling import pair_noise

# Numbers of int32, from 0 on.
_LARGEST = 2**31 - 1


def pairs_by_bin(distance, group, noise, bins=100, per_bin=(10, 10)):
    """Returns at most so many pairs of each bin of a histogram of distances.

    Args:
        distance: Float tensor `(rows, columns)`.
        group: Int32 tensor `(rows, columns)`, the number of the histogram that
            a pair is in, the number of histograms for none.
        noise: Float tensor `(rows, columns)` in [0, 1). Of each bin the pairs
            with the smallest are chosen.
        bins: Integer, between the smallest and the largest distance of all
            replicas. Defaults to `100`.
        per_bin: One integer for each histogram. Defaults to `(10, 10)`.

    Returns:
        Boolean tensor `(rows, columns)`.

    Example:

    >>> distance, noise = np.array([[0.0, 0.1, 0.9, 1.0]]), np.zeros((1, 4))
    >>> noise[0, 1] = 0.5
    >>> group = np.zeros((1, 4), "int32")
    >>> chosen = pairs_by_bin(distance, group, noise, bins=2, per_bin=(1,))
    >>> ops.convert_to_numpy(chosen)
    array([[ True, False,  True,  True]])
    """
    groups = len(per_bin)
    every, of_group = (distribute.all_gather(x) for x in (distance, group))
    far = ops.cast(float("inf"), distance.dtype)
    place = ops.full_like(group, groups * bins)
    for number in range(groups):
        of = ops.equal(of_group, number)
        nearest = ops.min(ops.where(of, every, far))
        farthest = ops.max(ops.where(of, every, -far))
        width = ops.maximum(farthest - nearest, 1e-12) / bins
        own = ops.equal(group, number)
        cell = ops.where(own, distance - nearest, 0.0) / width
        cell = ops.cast(ops.clip(ops.floor(cell), 0, bins - 1), "int32")
        place = ops.where(own, cell + number * bins, place)
    # Sorted, the keys of a bin follow each other in the order of their noise.
    step = _LARGEST // (groups * bins + 1)
    key = place * step + ops.cast(noise * (step - 1), "int32")
    keys = ops.sort(ops.reshape(distribute.all_gather(key), (-1,)))
    edges = ops.arange(groups * bins + 1, dtype="int32") * step
    edges = ops.cast(ops.searchsorted(keys, edges), "int32")
    most = ops.repeat(ops.convert_to_tensor(per_bin, "int32"), bins)
    last = ops.minimum(edges[:-1] + most, edges[1:]) - 1
    limit = ops.take(keys, ops.maximum(last, 0))
    limit = ops.concatenate([limit, ops.full((1,), -1, dtype="int32")])
    return key <= ops.take(limit, place)


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class UniformHistogram(Miner):
    """Draws as many pairs at every distance.

    The distances of the positives, and those of the negatives, are divided
    into bins of equal width, and at most so many pairs of each bin stay. The
    draw is a function of the distances, of the places in the batch and of the
    step, see `DistanceWeighted`.

    Args:
        bins: Integer. Defaults to `100`.
        positives_per_bin: Integer. Defaults to `10`.
        negatives_per_bin: Integer. Defaults to `10`.
        distance: `"euclidean"`, `"squared_euclidean"` or `"cosine"`. Defaults
            to `"euclidean"`.

    Raises:
        ValueError: If a number is not a positive integer or `distance` is
            unknown.

    Example:

    >>> loss = keras_dml.losses.Contrastive(miner=UniformHistogram())
    """

    draws = True

    def __init__(
        self,
        bins=100,
        positives_per_bin=10,
        negatives_per_bin=10,
        distance="euclidean",
    ):
        self.bins = positive_integer("bins", bins)
        self.positives_per_bin = positive_integer(
            "positives_per_bin", positives_per_bin
        )
        self.negatives_per_bin = positive_integer(
            "negatives_per_bin", negatives_per_bin
        )
        self.distance = one_of("distance", distance, DISTANCES)

    def mine(self, pairs: Pairs):
        distance = pair_distances(pairs, self.distance)
        positive, negative = pairs.masks
        chosen = pairs_by_bin(
            distance,
            ops.where(positive, 0, ops.where(negative, 1, 2)),
            pair_noise(pairs, distance),
            self.bins,
            (self.positives_per_bin, self.negatives_per_bin),
        )
        return (
            ops.logical_and(positive, chosen),
            ops.logical_and(negative, chosen),
        )
