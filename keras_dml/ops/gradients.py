"""Functions with their own gradient, cheaper than the automatic one."""

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
