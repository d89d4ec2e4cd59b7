"""Reductions over the rows of all replicas."""

from collections.abc import Callable

from keras_dml import distribute


def over_replicas(reduce: Callable, x):
    """Reduces the values that each replica has into one for all of them.

    Args:
        reduce: Function with an `axis`, such as `ops.sum` or `ops.max`.
        x: Float tensor, what the rows of this replica reduce to.

    Returns:
        Tensor of the shape of `x`, the same on every replica.

    Example:

    >>> ops.convert_to_numpy(over_replicas(ops.max, np.array([1.0, 2.0])))
    array([1., 2.])
    """
    return reduce(distribute.all_gather(x[None]), axis=0)
