"""A miner that takes as many pairs at every distance."""

import keras
import numpy as np
from keras import ops

from keras_dml.checks import positive_integer
from keras_dml.miners.base import Miner
from keras_dml.ops.distances import metric_name
from keras_dml.ops.draws import pair_noise
from keras_dml.ops.largest import largest_of_groups
from keras_dml.ops.pairs import Pairs, pair_distances
from keras_dml.ops.reductions import over_replicas

# The draw keeps a thousand counts for each.
MOST_BINS = 10_000
MOST_PAIRS = 2**31 - 1


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
    histograms = len(per_bin)
    far = ops.cast(float("inf"), distance.dtype)
    place = ops.full_like(group, histograms * bins)
    for number in range(histograms):
        own = ops.equal(group, number)
        nearest, farthest = (
            over_replicas(reduce, reduce(ops.where(own, distance, none)))
            for reduce, none in ((ops.min, far), (ops.max, -far))
        )
        width = ops.maximum(farthest - nearest, 1e-12) / bins
        cell = ops.where(own, distance - nearest, 0.0) / width
        cell = ops.cast(ops.clip(ops.floor(cell), 0, bins - 1), "int32")
        place = ops.where(own, cell + number * bins, place)
    most = np.repeat(np.asarray(per_bin, "int32"), bins)
    return largest_of_groups(
        -noise, place, len(most), lambda number: ops.minimum(number, most)
    )


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class UniformHistogram(Miner):
    """Draws as many pairs at every distance.

    The distances of the positives, and those of the negatives, are divided
    into bins of equal width, and at most so many pairs of each bin stay. The
    draw is a function of the distances, of the places in the batch and of the
    step. Wrap the loss in `keras_dml.losses.AtStep`, which gives the step:
    without it the noise of the draw is the same in every batch.

    Args:
        bins: Integer, at most 10,000. Defaults to `100`.
        positives_per_bin: Integer. Defaults to `10`.
        negatives_per_bin: Integer. Defaults to `10`.
        distance: What compares two rows, as `similarity` of
            `keras_dml.losses.PairLoss`. Defaults to `"euclidean"`.

    Raises:
        ValueError: If a number is not a positive integer or `distance` is
            unknown.

    Example:

    ```python
    loss = keras_dml.losses.Contrastive(miner=UniformHistogram())
    step = keras_dml.layers.TrainingStep(name="step")
    model = keras.Model(image, step(embedding))
    model.compile("adam", loss=keras_dml.losses.AtStep(loss))
    ```
    """

    draws = True

    def __init__(
        self,
        bins=100,
        positives_per_bin=10,
        negatives_per_bin=10,
        distance="euclidean",
    ):
        self.bins = positive_integer("bins", bins, most=MOST_BINS)
        self.positives_per_bin = positive_integer(
            "positives_per_bin", positives_per_bin, most=MOST_PAIRS
        )
        self.negatives_per_bin = positive_integer(
            "negatives_per_bin", negatives_per_bin, most=MOST_PAIRS
        )
        self.distance = metric_name("distance", distance)

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
