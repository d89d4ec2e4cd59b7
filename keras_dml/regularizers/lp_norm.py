"""A regularizer of the length of each row."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import in_interval, not_negative, of_shape
from keras_dml.ops.gradients import custom_gradient

LARGEST = 100


@keras.saving.register_keras_serializable(package="keras_dml")
class LpNorm(keras.regularizers.Regularizer):
    """Regularizer that shortens each row.

    `strength / n sum_i (sum_d |x_id|^p)^(power / p)` for `n` rows `x`. Its
    gradient at a zero row is zero. Pass it to `Proxies` as `regularizer`, or
    to a Keras layer as `activity_regularizer`. Keras 3.14 and newer divide the
    latter by the number of rows once more: multiply `strength` by it.

    Args:
        strength: Float of at least 0. Defaults to `1.0`.
        p: Float from 1 to 100. Defaults to `2.0`, the Euclidean length.
        power: Float from 1 to 100, the power of the length. Defaults to
            `1.0`.

    Raises:
        ValueError: If an argument is out of range, or the input is no matrix.

    Example:

    >>> float(LpNorm()(np.array([[3.0, 4.0], [0.0, 1.0]])))
    3.0
    """

    def __init__(self, strength=1.0, p=2.0, power=1.0):
        self.strength = not_negative("strength", strength)
        self.p = in_interval("p", p, 1, LARGEST, closed="both")
        self.power = in_interval("power", power, 1, LARGEST, closed="both")

    def __call__(self, x):
        of_shape("x", x, "rows", "dim")
        lengths = _lengths(ops.convert_to_tensor(x), self.p)
        return self.strength * ops.mean(ops.power(lengths, self.power))

    def get_config(self):
        return own_config(self)


def _lengths(x, p):
    """Returns the p-norm of each row, scaled so that no power overflows."""

    @custom_gradient
    def norm(x):
        size = ops.abs(x)
        largest = ops.max(size, axis=1, keepdims=True)
        share = ops.divide_no_nan(size, largest)
        total = ops.sum(ops.power(share, p), axis=1, keepdims=True)
        length = largest * ops.power(total, 1 / p)

        def gradient(upstream):
            # d|x|_p / dx = sign(x) (|x| / |x|_p)^(p - 1)
            slope = ops.power(ops.divide_no_nan(size, length), p - 1)
            return upstream[:, None] * ops.sign(x) * slope

        return length[:, 0], gradient

    return norm(x)
