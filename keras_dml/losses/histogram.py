"""The overlap of the similarities of positives and of negatives."""

import keras
from keras import ops

from keras_dml.checks import positive_integer
from keras_dml.losses.pair_loss import PairLoss
from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import over_replicas

# Float32 tells the places of cosines in finer ones hardly apart.
MOST_BINS = 100_000


def histogram_loss(similarity, positive, negative, bins=100):
    """Estimates how often a negative pair is more similar than a positive.

    Args:
        similarity: Float tensor `(rows, columns)`, cosines.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        bins: Integer, see `Histogram`. Defaults to `100`.

    Returns:
        Tensor `(rows,)`, the same value in every entry: the overlap over the
        batch of all replicas, zero if it lacks positives or negatives.

    Example:

    >>> similarity = np.array([[1.0, -1.0]])
    >>> first, second = np.array([[True, False]]), np.array([[False, True]])
    >>> float(histogram_loss(similarity, first, second)[0])
    0.0
    >>> float(histogram_loss(similarity, second, first)[0])
    1.0
    """
    similarity = ops.convert_to_tensor(similarity)
    share, start = points_around((similarity + 1.0) * (0.5 * bins), bins)
    own = _shares(share, start, positive, bins)
    other = _shares(share, start, negative, bins)
    overlap = ops.sum(other * ops.cumsum(own))
    return ops.broadcast_to(overlap, ops.shape(similarity)[:1])


def points_around(place, bins):
    """Finds the two of the points `0, 1, ..., bins` around each place.

    Args:
        place: Float tensor.
        bins: Integer.

    Returns:
        Tensor of the shape and dtype of `place`, its distance to the first of
        the two points; and an int32 tensor, this point.
    """
    # Rounding moves a place beyond the ends.
    start = ops.clip(ops.floor(ops.stop_gradient(place)), 0, bins - 1)
    return place - start, ops.cast(start, "int32")


def add_to_points(found, share, start, weights, bins):
    """Adds weights to the points around places, more to the nearer one.

    Args:
        found: Float tensor `(bins + 1,)`, the sums so far, or `0.0`.
        share: First result of `points_around`.
        start: Second result of `points_around`.
        weights: Float tensor of the shape of `share`.
        bins: Integer.

    Returns:
        Tensor `(bins + 1,)`, the new sums.
    """
    for part, step in ((1.0 - share, 0), (share, 1)):
        found = found + ops.segment_sum(
            ops.reshape(part * weights, (-1,)),
            ops.reshape(start + step, (-1,)),
            num_segments=bins + 1,
        )
    return found


def _shares(share, start, mask, bins):
    """Returns how much of the pairs lies at each of the points."""
    inside = ops.cast(mask, share.dtype)
    found = add_to_points(0.0, share, start, inside, bins)
    number = over_replicas(ops.sum, ops.sum(inside))
    return over_replicas(ops.sum, found) / ops.maximum(number, 1.0)


@keras.saving.register_keras_serializable(package="keras_dml")
class Histogram(PairLoss):
    """The probability that a negative pair is more similar than a positive.

    `L = sum_r h-_r sum_{q <= r} h+_q`

    where a pair adds to the two of the `B + 1` points between -1 and 1 that
    its cosine lies between, in linear shares, and `h+` and `h-` are the sums
    over the positive and the negative pairs of the batch, divided by their
    numbers. There is no margin and no scale to choose.

    It is one number for the whole batch of all replicas. So every row has the
    same value, and sample weights scale the whole loss.

    Args:
        bins: Integer from 1 to 100,000, `B`. Defaults to `100`.
        **kwargs: `miner`, `reduction`, `name` and `dtype`, see
            `keras_dml.losses.PairLoss`.

    Raises:
        ValueError: If `bins` is out of range, or `normalize` is `False`.

    Example:

    ```python
    model.compile("adam", loss=Histogram(bins=100))
    ```

    Reference:
        Ustinova and Lempitsky, "Learning Deep Embeddings with Histogram Loss",
        2016.
    """

    of_unit_rows = True
    takes_any_average = False

    def __init__(self, bins=100, **kwargs):
        super().__init__(**kwargs)
        self.bins = positive_integer("bins", bins, most=MOST_BINS)

    def pair_loss(self, pairs: Pairs):
        return histogram_loss(
            self.similarities(pairs), *pairs.masks, bins=self.bins
        )
