"""The distinct values of a vector of integers."""

from keras import ops

NO_VALUE = 2**31 - 1


def distinct(x):
    """The values of `x` in ascending order, each of them once.

    Args:
        x: Integer tensor `(n,)` of values below `NO_VALUE`.

    Returns:
        Tensor of the shape and dtype of `x`, whose end is filled with
        `NO_VALUE`, and the number of distinct values, an int32 scalar tensor.

    Example:

    >>> distinct(np.array([7, 2, 7], "int32"))
    ([2, 7, 2147483647], 2)
    """
    ordered = ops.sort(x)
    new = ops.concatenate(
        [
            ops.cast(ops.ones_like(ordered[:1]), "int32"),
            ops.cast(ops.not_equal(ordered[1:], ordered[:-1]), "int32"),
        ]
    )
    places = ops.cumsum(new) - 1
    empty = ops.full_like(ordered, NO_VALUE)
    return ops.scatter_update(empty, places[:, None], ordered), ops.sum(new)
