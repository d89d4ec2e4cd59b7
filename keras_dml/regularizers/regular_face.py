"""A regularizer that pushes each class from its nearest other class."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import not_negative, of_shape
from keras_dml.ops.pairs import gram_matrix
from keras_dml.ops.similarities import unit_rows


@keras.saving.register_keras_serializable(package="keras_dml")
class RegularFace(keras.regularizers.Regularizer):
    """Regularizer that pushes each class from its nearest other class.

    `strength / C sum_c max_{k != c} u(w_c) . u(w_k)` for the weights, or
    proxies, `w` of `C` classes, `u(v) = v / |v|`: the mean cosine of each
    proxy with the nearest other one. Pass it to `Proxies` as `regularizer`.

    Args:
        strength: Float of at least 0. Defaults to `1.0`.

    Raises:
        ValueError: If `strength` is negative, or the weight is no matrix.

    Example:

    >>> float(RegularFace()(np.eye(3)))
    0.0

    Reference:
        Zhao, Xu and Cheng, "RegularFace: Deep Face Recognition via Exclusive
        Regularization", 2019.
    """

    def __init__(self, strength=1.0):
        self.strength = not_negative("strength", strength)

    def __call__(self, x):
        of_shape("x", x, "classes", "dim")
        cosines = gram_matrix(unit_rows(x))
        # No cosine is as low as -2, which stands for the class itself.
        itself = ops.eye(ops.shape(x)[0], dtype=cosines.dtype)
        others = ops.where(itself > 0, -2.0, cosines)
        nearest = ops.max(others, axis=1)
        nearest = ops.where(nearest < -1.5, 0.0, nearest)  # a single class
        return self.strength * ops.mean(nearest)

    def get_config(self):
        return own_config(self)
