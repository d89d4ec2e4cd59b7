"""Finds the largest numbers of rows and of groups."""

from keras import ops

from keras_dml.ops.reductions import over_replicas

# Of a digit in the search.
_BITS = 10


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
    scale = 2.0 ** (3 * _BITS) / ops.maximum(most - least, 1e-20)
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
