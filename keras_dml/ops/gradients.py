"""Functions that know a cheaper way to their gradient."""

from keras import ops


def custom_gradient(function):
    """`keras.ops.custom_gradient` with one form of gradient for all backends.

    Args:
        function: Function of tensors that returns its result, one tensor, and
            the gradient: a function of the upstream gradient that returns a
            tensor for every argument, or the only one.

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

        # PyTorch gives the arguments first, and the upstream by name.
        def of_backend(*values, upstream=None):
            return gradient(values[0] if upstream is None else upstream)

        return result, of_backend

    def call(*arguments):
        # TensorFlow takes no variables here, and a reshaped one is a tensor.
        return with_gradient(*(ops.reshape(x, ops.shape(x)) for x in arguments))

    return call
