"""Batch normalization with fixed statistics and trained affine weights."""

import keras


@keras.saving.register_keras_serializable(package="keras_dml")
class FrozenStatisticsBatchNormalization(keras.layers.BatchNormalization):
    """Normalizes by the moving statistics, in training too.

    `gamma * (x - moving_mean) / sqrt(moving_variance + epsilon) + beta`.
    Training still learns `gamma` and `beta`. Keras 3 has no switch for this:
    `trainable=False` freezes `gamma` and `beta` as well, and `fit` overrides a
    `training=False` given while building a functional model.

    The layer has the arguments and weights of
    `keras.layers.BatchNormalization`, so `set_weights` takes the weights of a
    plain layer. A weights file of a plain layer does not fit, because Keras
    names its entries by class.

    Args:
        **kwargs: Arguments of `keras.layers.BatchNormalization`.

    Input shape:
        Tensor of any rank.

    Output shape:
        Tensor of the shape of the input.

    Example:

    >>> layer = FrozenStatisticsBatchNormalization(epsilon=0.0)
    >>> float(layer(np.full((2, 1), 3.0), training=True)[0, 0])
    3.0
    """

    def call(self, inputs, training=None, mask=None):
        return super().call(inputs, training=False, mask=mask)
