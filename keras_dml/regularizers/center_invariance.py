"""A regularizer of the lengths of class weights."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import not_negative, of_shape


@keras.saving.register_keras_serializable(package="keras_dml")
class CenterInvariance(keras.regularizers.Regularizer):
    """Regularizer that makes the weights of all classes equally long.

    `strength / (4 C) sum_c (|w_c|^2 - m)^2` for the weights `w` of `C`
    classes, where `m` is the mean of `|w_c|^2`. It acts on weights whose
    length counts, such as `Proxies(metric="dot", unit_proxies=False)`.

    Args:
        strength: Float of at least 0. Defaults to `1.0`.

    Raises:
        ValueError: If `strength` is negative, or the weight is no matrix.

    Example:

    >>> float(CenterInvariance()(np.array([[1.0, 0.0], [0.0, 3.0]])))
    4.0

    Reference:
        Wu et al., "Deep Face Recognition with Center Invariant Loss", 2017.
    """

    def __init__(self, strength=1.0):
        self.strength = not_negative("strength", strength)

    def __call__(self, x):
        of_shape("x", x, "classes", "dim")
        squared = ops.sum(ops.square(x), axis=1)
        deviation = squared - ops.mean(squared)
        return self.strength * ops.mean(ops.square(deviation)) / 4.0

    def get_config(self):
        return own_config(self)
