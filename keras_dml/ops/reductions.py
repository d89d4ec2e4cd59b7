"""Masked, numerically stable sums, maxima and means, over all replicas."""

from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_dml import distribute
from keras_dml.ops.gradients import custom_gradient


def log_one_plus_sum_exp(exponents, mask, axis: int):
    """Computes `log(1 + sum_i exp(z_i))` over the `z_i` that `mask` selects.

    This is the soft form of `max(0, max_i z_i)`. It is zero if nothing is
    selected, never overflows, and has finite gradients everywhere.

    Args:
        exponents: Float tensor.
        mask: Boolean tensor that broadcasts to the shape of `exponents`.
        axis: Integer, the axis to sum over.

    Returns:
        Tensor without the axis, of the dtype of `exponents`.

    Example:

    >>> z = np.array([[0.0, 1000.0], [0.0, 5.0]])
    >>> mask = np.array([[True, True], [False, False]])
    >>> ops.convert_to_numpy(log_one_plus_sum_exp(z, mask, axis=1))
    array([1000.,    0.])
    """

    @custom_gradient
    def soft_maximum(exponents):
        nothing = ops.cast(float("-inf"), exponents.dtype)
        exponents = ops.where(mask, exponents, nothing)
        largest = ops.max(exponents, axis=axis, keepdims=True)
        largest = ops.maximum(largest, 0.0)
        exponentials = ops.exp(exponents - largest)
        total = ops.sum(exponentials, axis=axis, keepdims=True)

        def gradient(upstream):
            share = ops.expand_dims(upstream, axis) / (
                ops.exp(-largest) + total
            )
            return exponentials * share

        result = largest + ops.log1p(ops.expm1(-largest) + total)
        return ops.squeeze(result, axis=axis), gradient

    return soft_maximum(ops.convert_to_tensor(exponents))


def log_sum_exp(exponents, mask):
    """Computes `log sum_j exp(z_ij)` over selected entries; `0` if none."""
    any_selected = ops.any(mask, axis=1)
    # Select a whole row without entries: else the gradient would be NaN.
    mask = ops.logical_or(mask, ops.logical_not(any_selected)[:, None])
    nothing = ops.cast(float("-inf"), exponents.dtype)
    result = ops.logsumexp(ops.where(mask, exponents, nothing), axis=1)
    return ops.where(any_selected, result, 0.0)


def masked_sum(x, mask):
    """Returns the sum of the selected entries of each row."""
    return ops.sum(ops.where(mask, x, 0.0), axis=1)


def masked_max(x, mask):
    """Returns the largest selected entry of each row; `-inf` if none."""
    return ops.max(ops.where(mask, x, ops.cast(float("-inf"), x.dtype)), axis=1)


def masked_min(x, mask):
    """Returns the smallest selected entry of each row; `inf` if none."""
    return -masked_max(-x, mask)


def masked_mean(x, mask):
    """Returns the mean of the selected entries of each row; `0` if none."""
    number = ops.maximum(count(mask, x.dtype), 1.0)
    return masked_sum(x, mask) / number


def count(mask, dtype):
    """Returns the number of selected entries of each row, as a float."""
    return ops.sum(ops.cast(mask, dtype), axis=1)


def batch_mean(totals, counts):
    """Computes `sum_i t_i / sum_i n_i` over the rows of all replicas.

    The result is `0` if all `n_i` are.

    Args:
        totals: Float tensor `(rows,)`, `t`.
        counts: Tensor `(rows,)`, `n`: how many values each total sums up;
            booleans count as 0 and 1.

    Returns:
        Tensor `(rows,)`, the same value in every entry.
    """
    total = ops.sum(distribute.all_gather(totals))
    counts = ops.stop_gradient(ops.cast(counts, totals.dtype))
    number = ops.sum(distribute.all_gather(counts))
    mean = total / ops.maximum(number, 1.0)
    mean = ops.where(number > 0, mean, 0.0)
    return ops.broadcast_to(mean, ops.shape(totals))


def rounding(x) -> float:
    """Returns a bound for the rounding error of sums near 1 in `x.dtype`."""
    dtype = keras.backend.standardize_dtype(x.dtype)
    return 8.0 * float(np.finfo(dtype).eps)


def over_replicas(reduce: Callable, x):
    """Reduces the values of all replicas to one value.

    Args:
        reduce: Function with an `axis`, such as `ops.sum` or `ops.max`.
        x: Float tensor, the reduced rows of this replica.

    Returns:
        Tensor of the shape of `x`, the same on every replica.

    Example:

    >>> ops.convert_to_numpy(over_replicas(ops.max, np.array([1.0, 2.0])))
    array([1., 2.])
    """
    return reduce(distribute.all_gather(x[None]), axis=0)


def row_sums(x):
    """Computes `ops.sum(x, axis=1)` of a float matrix as a matrix product."""
    ones = ops.ones((ops.shape(x)[1], 1), dtype=x.dtype)
    return ops.matmul(x, ones)[:, 0]


def column_sums(x):
    """Computes `ops.sum(x, axis=0)` of a float matrix as a matrix product."""
    ones = ops.ones((1, ops.shape(x)[0]), dtype=x.dtype)
    return ops.matmul(ones, x)[0]
