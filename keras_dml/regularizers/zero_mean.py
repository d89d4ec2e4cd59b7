"""A regularizer of the mean of each embedding."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import not_negative, of_shape


@keras.saving.register_keras_serializable(package="keras_dml")
class ZeroMean(keras.regularizers.Regularizer):
    """Regularizer that makes the entries of each row sum to zero.

    `strength / n sum_i |sum_d x_id|` for `n` rows `x`. Pass it to `Proxies` as
    `regularizer`, or to a Keras layer as `activity_regularizer`. Keras 3.14 and
    newer divide the latter by the number of rows once more: multiply
    `strength` by it.

    Args:
        strength: Float of at least 0. Defaults to `1.0`.

    Raises:
        ValueError: If `strength` is negative, or the input is no matrix.

    Example:

    >>> float(ZeroMean(0.1)(np.array([[1.0, -1.0], [2.0, 2.0]])))
    0.2

    Reference:
        Yuan et al., "Signal-To-Noise Ratio: A Robust Distance Metric for Deep
        Metric Learning", 2019, equation 12.
    """

    def __init__(self, strength=1.0):
        self.strength = not_negative("strength", strength)

    def __call__(self, x):
        of_shape("x", x, "rows", "dim")
        return self.strength * ops.mean(ops.abs(ops.sum(x, axis=1)))

    def get_config(self):
        return own_config(self)
