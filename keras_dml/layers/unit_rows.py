"""L2 normalisation with a finite gradient."""

import keras
from keras import ops


def unit_rows(x, epsilon: float = 1e-12):
    """Divides vectors by their length: `x / sqrt(max(sum(x**2), epsilon))`.

    Unlike `keras.ops.normalize`, whose gradient at a zero vector is NaN, the
    bound is inside the root: a zero vector stays zero and its gradient is
    finite. Half precision is widened to float32 on the way, where the sum of
    squares cannot overflow for entries up to `1e18`.

    Args:
        x: Float tensor, vectors along the last axis.
        epsilon: Float, lower bound of the squared length. Defaults to
            `1e-12`.

    Returns:
        Tensor of the shape and dtype of `x`.

    Example:

    >>> ops.convert_to_numpy(unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    x = ops.convert_to_tensor(x)
    wide = ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
    squared = ops.sum(ops.square(wide), axis=-1, keepdims=True)
    return ops.cast(wide * ops.rsqrt(ops.maximum(squared, epsilon)), x.dtype)
