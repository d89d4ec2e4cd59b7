"""Soft maxima with a floor at zero."""

from keras import ops

from keras_dml.ops.custom_gradient import custom_gradient


def log_one_plus_sum_exp(exponents, mask, axis: int):
    """`log(1 + sum_i exp(z_i))` over the entries `z` that `mask` selects.

    It is the soft form of `max(0, max_i z_i)`: zero where nothing is selected,
    and never an overflow. Gradients are finite everywhere.

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
