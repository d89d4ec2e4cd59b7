"""Functions with their own gradient, where the automatic one is dear."""

from keras import ops


def custom_gradient(function):
    """Makes a function with its own gradient work on all backends.

    It wraps `keras.ops.custom_gradient`, whose gradient takes different
    arguments on different backends.

    Args:
        function: Function of tensors that returns one tensor, the result, and
            the gradient: a function of the upstream gradient that returns one
            tensor for each argument, a lone tensor for a single argument.

    Returns:
        Function of the same tensors that returns the result.

    Example:

    ```python
    @custom_gradient
    def square(x):
        return ops.square(x), lambda upstream: 2.0 * upstream * x
    ```
    """

    @ops.custom_gradient
    def with_gradient(*arguments):
        result, gradient = function(*arguments)

        # PyTorch passes the arguments first, and `upstream` by name.
        def of_backend(*values, upstream=None):
            return gradient(values[0] if upstream is None else upstream)

        return result, of_backend

    def call(*arguments):
        # TensorFlow takes no variables here; reshaping turns them into tensors.
        return with_gradient(*(ops.reshape(x, ops.shape(x)) for x in arguments))

    return call


def with_slopes(values, slopes, x):
    """Gives values the derivatives `slopes` by `x`.

    Backends cannot differentiate a loop whose length they do not know. Such a
    loop computes the derivatives beside the values, and this connects them.
    Only first derivatives are correct.

    Args:
        values: Float tensor `(rows,)`, computed from `ops.stop_gradient(x)`.
        slopes: Float tensor `(rows, columns)`, the derivative of the value of
            each row by the entries of `x` in this row.
        x: Float tensor `(rows, columns)`.

    Returns:
        Tensor `(rows,)`, equal to `values`.
    """
    # The sum is zero, but has a derivative.
    return values + ops.sum(slopes * (x - ops.stop_gradient(x)), axis=1)


def shared_slopes(slopes, x, values):
    """Returns zeros that have the derivatives `slopes` by `x` in all.

    For a tensor `x` that does not belong to a row: each row takes an equal
    part of its derivative, see `with_slopes`.

    Args:
        slopes: Float tensor, the derivative by `x` of the sum of all values.
        x: Float tensor of the same shape.
        values: Float tensor `(rows,)`, only for its number of rows.

    Returns:
        Tensor of no axes, zero.
    """
    total = ops.sum(slopes * (x - ops.stop_gradient(x)))
    # A replica may have no rows.
    return total / ops.cast(ops.maximum(ops.shape(values)[0], 1), x.dtype)
