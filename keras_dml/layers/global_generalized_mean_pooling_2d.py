"""Generalized mean pooling, GeM: between average and max pooling."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import boolean, positive_number
from keras_dml.ops.data_format import (
    pooled_shape,
    spatial_axes,
    standardize_data_format,
)


@keras.saving.register_keras_serializable(package="keras_dml")
class GlobalGeneralizedMeanPooling2D(keras.layers.Layer):
    """GeM: the generalized mean of every channel.

    `y_c = (mean of max(x_{hwc}, epsilon)**p over h, w)**(1/p)`. `p=1` is
    global average pooling of activations that are not negative, and for large
    `p` the mean approaches the maximum. The layer does not support masking,
    and computes in float32 under half precision.

    Args:
        p: Positive float, the exponent. Defaults to `3.0`.
        trainable_p: Boolean, whether the exponent is trained; it is then one
            weight for all channels, and `p` is its initial value. Defaults to
            `False`, no weights.
        epsilon: Positive float, the least value of an activation. Defaults to
            `1e-6`.
        data_format: `"channels_last"` or `"channels_first"`. Defaults to
            `None`, which means `keras.config.image_data_format()`.
        **kwargs: Base layer arguments, such as `name` and `dtype`.

    Input shape:
        4D tensor `(batch, height, width, channels)`, or
        `(batch, channels, height, width)` for `"channels_first"`.

    Output shape:
        2D tensor `(batch, channels)` of the layer's compute dtype.

    Raises:
        ValueError: If `p` or `epsilon` is not positive, or `trainable_p` no
            boolean.

    Example:

    >>> x = np.array([1.0, 7.0, 5.0, 7.0]).reshape(1, 2, 2, 1)
    >>> round(float(GlobalGeneralizedMeanPooling2D(p=2.0)(x)[0, 0]), 3)
    5.568

    Reference:
        Radenovic, Tolias and Chum, "Fine-tuning CNN Image Retrieval with No
        Human Annotation", 2018, equation 3.
    """

    def __init__(
        self,
        p=3.0,
        trainable_p=False,
        epsilon=1e-6,
        data_format=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.p = positive_number("p", p)
        self.trainable_p = boolean("trainable_p", trainable_p)
        self.epsilon = positive_number("epsilon", epsilon)
        self.data_format = standardize_data_format(data_format)
        self.input_spec = keras.layers.InputSpec(ndim=4)

    def build(self, input_shape):
        if self.trainable_p:
            self.exponent = self.add_weight(
                shape=(),
                initializer=keras.initializers.Constant(self.p),
                autocast=False,
                name="p",
            )

    def call(self, inputs):
        axes = spatial_axes(self.data_format)
        wide = keras.backend.result_type(inputs.dtype, "float32")
        p = ops.cast(self.exponent if self.trainable_p else self.p, wide)
        values = ops.maximum(ops.cast(inputs, wide), self.epsilon)
        # Powers of shares of the largest value do not overflow.
        largest = ops.stop_gradient(ops.max(values, axis=axes, keepdims=True))
        powers = ops.power(values / largest, p)
        mean = ops.power(ops.mean(powers, axis=axes), 1.0 / p)
        for axis in reversed(axes):
            largest = ops.squeeze(largest, axis=axis)
        return ops.cast(mean * largest, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return pooled_shape(input_shape, self.data_format)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}
