"""Draws classes, and pairs by their distance; finds the largest numbers."""

import contextlib
import threading

from keras import ops

from keras_dml.ops.pairs import Pairs
from keras_dml.ops.reductions import masked_max, over_replicas
from keras_dml.ops.rows import distinct

# At a distance of two the weight is infinite.
LARGEST = 1.99
# Of a digit in the search for the largest numbers.
_BITS = 10
# Replicas are threads.
_CURRENT = threading.local()


def positions_in_sample(labels, batch_labels):
    """Returns the column of `sample_classes` that holds each row's class.

    The labels of the batch determine it: their classes come first, in
    ascending order.

    Args:
        labels: Int32 tensor `(rows,)`, all of them in `batch_labels`.
        batch_labels: Int32 tensor `(batch,)`, the labels of all replicas.

    Returns:
        Int32 tensor `(rows,)`.

    Example:

    >>> labels = np.array([7, 2, 7], "int32")
    >>> ops.convert_to_numpy(positions_in_sample(labels, labels))
    array([1, 0, 1], dtype=int32)
    """
    classes, _ = distinct(batch_labels)
    return ops.cast(ops.searchsorted(classes, labels), "int32")


def sample_classes(batch_labels, num_classes, size, uniform):
    """Returns the classes of the batch in ascending order, then drawn ones.

    The function divides the other classes, from a random start on, into one
    neighborhood of about equal length for each remaining column, and draws
    one class from each. So it draws every other class with the same
    probability and none twice, in a time that grows with `size` alone. If
    `size` equals `num_classes`, it returns all classes.

    Args:
        batch_labels: Int32 tensor `(batch,)`, the labels of all replicas.
        num_classes: Integer.
        size: Integer, at least the number of classes of the batch, at most
            `num_classes`.
        uniform: Float tensor `(size + 1,)` of numbers in `[0, 1)`.

    Returns:
        Int32 tensor `(size,)` of distinct classes.

    Example:

    >>> labels, uniform = np.array([3, 1], "int32"), np.zeros(5, "float32")
    >>> ops.convert_to_numpy(sample_classes(labels, 8, 4, uniform))
    array([1, 3, 0, 5], dtype=int32)
    """
    classes, count = distinct(batch_labels)
    others, columns = num_classes - count, size - count
    column = ops.arange(size, dtype="int32")
    # The first neighborhoods share the remainder of the division. Products of
    # two large numbers would not fit into 32 bits.
    number = column - count
    length = others // ops.maximum(columns, 1)
    longer = others - length * columns
    first = number * length + ops.minimum(number, longer)
    length = length + ops.cast(number < longer, "int32")
    place = first + _below(length, uniform[:size])
    place = place + _below(others, uniform[size])
    place = ops.mod(place, ops.maximum(others, 1))
    own = ops.take(
        classes, ops.minimum(column, ops.shape(classes)[0] - 1), axis=0
    )
    return ops.where(number < 0, own, _other_class(place, classes))


def _other_class(place, classes):
    """Returns the class at a place among those that are not in `classes`."""
    order = ops.arange(ops.shape(classes)[0], dtype="int32")
    before = ops.searchsorted(classes - order, place, side="right")
    return place + ops.cast(before, "int32")


def _below(limit, uniform):
    """Maps numbers in [0, 1) to integers from 0 to `limit - 1`."""
    scaled = uniform * ops.cast(limit, uniform.dtype)
    return ops.minimum(ops.cast(ops.floor(scaled), "int32"), limit - 1)


def nth_largest(scores, number):
    """Returns the entry of a place in the descending order of each row.

    Args:
        scores: Float tensor `(rows, columns)`, a constant. Equal entries have
            one place.
        number: Int32 tensor `(rows,)`, the place, counted from 1. The time
            grows with the largest.

    Returns:
        Tensor `(rows,)`: `inf` for the place 0, `-inf` beyond the last.

    Example:

    >>> scores = ops.convert_to_tensor([[3.0, 1.0, 2.0], [3.0, 1.0, 2.0]])
    >>> ops.convert_to_numpy(nth_largest(scores, np.array([1, 2], "int32")))
    array([3., 2.], dtype=float32)
    """
    far = ops.cast(float("inf"), scores.dtype)

    def turn(index, last):
        below = ops.where(scores < last[:, None], scores, -far)
        return ops.where(index < number, ops.max(below, axis=1), last)

    start = ops.full_like(scores[:, 0], float("inf"))
    return ops.fori_loop(0, ops.max(number, initial=0), turn, start)


@contextlib.contextmanager
def at_step(step):
    """Lets draws depend on the training step, in this thread.

    Args:
        step: Integer scalar tensor.

    Example:

    >>> with at_step(3):
    ...     training_step()
    3
    """
    before = training_step()
    _CURRENT.step = step
    try:
        yield
    finally:
        _CURRENT.step = before


def training_step():
    """Returns the step that `at_step` gave; 0 outside of it."""
    return getattr(_CURRENT, "step", 0)


def distance_weighted_negatives(
    distance, pairs: Pairs, nearest=0.5, farthest=1.4
):
    """Draws one negative for each positive of a row.

    The weight of a negative at the distance `d` is the inverse of the density
    of distances on the unit sphere: `log w = (2 - D) log d`
    `- (D - 3) / 2 log(1 - d**2 / 4)` with the dimension `D`. Distances below
    `nearest` count as `nearest`, and negatives from `farthest` on are left
    out. A row without closer negatives draws from all its negatives with
    equal probability. A row draws no negative twice.

    The draw depends on the distances, the step and the positions of the pairs
    in the global batch only. So it does not depend on the number of replicas,
    and a resumed training draws the same negatives as an uninterrupted one.

    Args:
        distance: Float tensor `(rows, columns)`, Euclidean distances of unit
            vectors.
        pairs: The `Pairs`.
        nearest: Float. Defaults to `0.5`.
        farthest: Float. Defaults to `1.4`.

    Returns:
        Boolean tensor `(rows, columns)`, the drawn negatives.

    Reference:
        Wu et al., "Sampling Matters in Deep Embedding Learning", 2017,
        equation 3.
    """
    dim = pairs.embeddings.shape[1]
    distance = ops.stop_gradient(distance)
    clipped = ops.clip(distance, nearest, LARGEST)
    weights = (2.0 - dim) * ops.log(clipped) - 0.5 * (dim - 3.0) * ops.log(
        1.0 - 0.25 * ops.square(clipped)
    )
    near = ops.logical_and(pairs.negative, distance < farthest)
    any_near = ops.any(near, axis=1, keepdims=True)
    allowed = ops.where(any_near, near, pairs.negative)
    weights = ops.where(any_near, weights, ops.zeros_like(weights))
    # The k largest sums of log-weight and Gumbel noise are k draws without
    # replacement. The log-weights span hundreds: subtract the largest, or the
    # noise would lose digits in the sum.
    any_allowed = ops.any(allowed, axis=1)
    largest = ops.where(any_allowed, masked_max(weights, allowed), 0.0)
    weights = weights - largest[:, None]
    noise = pair_noise(pairs, distance)
    scores = weights - ops.log(-ops.log(noise))
    scores = ops.where(allowed, scores, ops.cast(float("-inf"), scores.dtype))
    number = ops.sum(ops.cast(pairs.positive, "int32"), axis=1)
    last = nth_largest(scores, number)
    return ops.logical_and(allowed, scores >= last[:, None])


def largest_of_groups(scores, group, groups, wanted):
    """Finds the largest scores of each group, of all replicas together.

    It also finds those that equal the last but for the rounding of the largest
    score. It counts the scores by their digits, which takes less time than
    sorting them.

    Args:
        scores: Float tensor `(rows, columns)`.
        group: Int32 tensor `(rows, columns)`, the group of each score, from 0
            on; `groups` for a score that does not count.
        groups: Integer, the number of groups.
        wanted: Function of an int32 tensor `(groups,)`, the number of scores
            of each group. It returns how many to find, at most all.

    Returns:
        Boolean tensor `(rows, columns)`.

    Example:

    >>> scores = np.array([[3.0, 1.0, 2.0, 9.0]])
    >>> group = np.array([[0, 0, 0, 1]], "int32")
    >>> chosen = largest_of_groups(scores, group, 2, lambda n: (n + 1) // 2)
    >>> ops.convert_to_numpy(chosen)
    array([[ True, False,  True,  True]])
    """
    counts = ops.less(group, groups)
    far = ops.cast(float("inf"), scores.dtype)
    least = over_replicas(ops.min, ops.min(ops.where(counts, scores, far)))
    most = over_replicas(ops.max, ops.max(ops.where(counts, scores, -far)))
    scale = 2.0 ** (3 * _BITS) / ops.maximum(most - least, 1e-30)
    number = ops.where(counts, scores - least, 0.0) * scale
    number = ops.cast(number, "int32")
    number = ops.minimum(number, 2 ** (3 * _BITS) - 1)
    limit, left = ops.zeros((groups,), dtype="int32"), None
    for shift in (2 * _BITS, _BITS, 0):
        leading = ops.right_shift(number, shift)
        same = ops.right_shift(leading, _BITS) == _of_group(limit, group)
        digit = ops.bitwise_and(leading, 2**_BITS - 1)
        place = ops.where(same, group, groups) * 2**_BITS + digit
        found = _count(place, groups + 1)[:groups]
        # How many have this digit or a larger one.
        found = ops.flip(ops.cumsum(ops.flip(found, axis=1), axis=1), axis=1)
        if left is None:
            left = wanted(found[:, 0])
        enough = ops.cast(found >= left[:, None], "int32")
        chosen = ops.sum(enough, axis=1) - 1
        beyond = ops.pad(found[:, 1:], [[0, 0], [0, 1]])
        beyond = ops.take_along_axis(beyond, chosen[:, None], axis=1)[:, 0]
        limit, left = limit * 2**_BITS + chosen, left - beyond
    return ops.logical_and(counts, number >= _of_group(limit, group))


def _of_group(values, group):
    """Returns the value of the group of each entry; 0 for no group."""
    return ops.take(ops.pad(values, [[0, 1]]), group)


def _count(place, groups):
    """Counts the entries of each place, of all replicas together."""
    place = ops.reshape(place, (-1,))
    size = groups * 2**_BITS
    found = ops.segment_sum(ops.ones_like(place), place, size)
    found = over_replicas(ops.sum, found)
    return ops.reshape(found, (groups, 2**_BITS))


def pair_noise(pairs: Pairs, like):
    """Returns numbers in (0, 1) from a hash of step, row and column.

    Args:
        pairs: The `Pairs`; their columns are counted from the first.
        like: Float tensor `(rows, columns)`, for the shape and the dtype.
    """
    rows = ops.cast(ops.arange(ops.shape(like)[0]) + pairs.first_row, "int32")
    columns = ops.cast(ops.arange(ops.shape(like)[1]), "int32")
    by_row = _hash(rows + _hash(ops.cast(pairs.step, "int32")))
    bits = _hash(by_row[:, None] + columns[None, :])
    # float32 holds 23 bits plus a half exactly.
    bits = ops.bitwise_and(bits, _int32(2**23 - 1))
    return (ops.cast(bits, like.dtype) + 0.5) / 2.0**23


def _hash(x):
    """Mixes the bits of int32 numbers; the constants are of lowbias32."""
    x = ops.bitwise_xor(x, _shift(x, 16)) * _int32(0x7FEB352D)
    x = ops.bitwise_xor(x, _shift(x, 15)) * _int32(0x846CA68B - 2**32)
    return ops.bitwise_xor(x, _shift(x, 16))


def _shift(x, bits):
    """Shifts to the right and fills with zeros, unlike a signed shift."""
    shifted = ops.bitwise_right_shift(x, _int32(bits))
    return ops.bitwise_and(shifted, _int32(2 ** (32 - bits) - 1))


def _int32(value):
    return ops.convert_to_tensor(value, "int32")
