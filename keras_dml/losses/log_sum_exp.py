"""Soft maxima with a floor at zero, over the rows of all replicas."""

from keras import ops

from keras_dml import distribute


def log_one_plus_sum_exp(exponents, mask, axis: int, gather: bool = False):
    """`log(1 + sum_i exp(z_i))` over the entries `z` that `mask` selects.

    It is the soft form of `max(0, max_i z_i)`: zero where nothing is selected,
    and never an overflow. Gradients are finite everywhere.

    Args:
        exponents: Float tensor.
        mask: Boolean tensor that broadcasts to the shape of `exponents`.
        axis: Integer, the axis to sum over.
        gather: Boolean, whether the sum includes the rows of the other
            replicas; needs `axis=0`. Every replica sends two numbers for each
            entry of the result. Defaults to `False`.

    Returns:
        Tensor without the axis, of the dtype of `exponents`.

    Example:

    >>> z = np.array([[0.0, 1000.0], [0.0, 5.0]])
    >>> mask = np.array([[True, True], [False, False]])
    >>> ops.convert_to_numpy(log_one_plus_sum_exp(z, mask, axis=1))
    array([1000.,    0.])
    """
    nothing = ops.cast(float("-inf"), exponents.dtype)
    exponents = ops.where(mask, exponents, nothing)
    largest = ops.stop_gradient(ops.max(exponents, axis=axis, keepdims=True))
    if gather:
        largest = ops.max(distribute.all_gather(largest), axis=0, keepdims=True)
    largest = ops.maximum(largest, 0.0)
    total = ops.sum(ops.exp(exponents - largest), axis=axis, keepdims=True)
    if gather:
        total = ops.sum(distribute.all_gather(total), axis=0, keepdims=True)
    largest, total = (ops.squeeze(x, axis=axis) for x in (largest, total))
    return largest + ops.log1p(ops.expm1(-largest) + total)
