"""Pooling between global max pooling and global average pooling."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import positive_integer
from keras_dml.ops.data_format import (
    pooled_shape,
    spatial_axes,
    standardize_data_format,
)


@keras.saving.register_keras_serializable(package="keras_dml")
class GlobalKMaxPooling2D(keras.layers.Layer):
    """Averages the `k` largest activations of every channel.

    `y_c = 1/k * sum of the k largest x_{hwc} over h, w`. `k=1` is global max
    pooling, and `k = height * width` is global average pooling. Only the `k`
    largest activations get a gradient. The layer has no weights, does not
    support masking, and averages in float32 under half precision.

    Args:
        k: Integer, how many activations to average per channel.
        data_format: `"channels_last"` or `"channels_first"`. Defaults to
            `None`, which means `keras.config.image_data_format()`.
        **kwargs: Base layer arguments, such as `name` and `dtype`.

    Input shape:
        4D tensor `(batch, height, width, channels)`, or
        `(batch, channels, height, width)` for `"channels_first"`.

    Output shape:
        2D tensor `(batch, channels)` of the layer's compute dtype.

    Raises:
        ValueError: If `k` is not a positive integer, or is larger than
            `height * width` where that is known.

    Example:

    >>> x = np.array([1.0, 5.0, 3.0, 4.0]).reshape(1, 2, 2, 1)
    >>> float(GlobalKMaxPooling2D(k=2)(x)[0, 0])
    4.5

    Reference:
        Teh, DeVries and Taylor, "ProxyNCA++", 2020, section 3.5.
    """

    def __init__(self, k, data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.k = positive_integer("k", k)
        self.data_format = standardize_data_format(data_format)
        self.input_spec = keras.layers.InputSpec(ndim=4)

    def build(self, input_shape):
        height, width = (input_shape[a] for a in spatial_axes(self.data_format))
        if None not in (height, width) and self.k > height * width:
            raise ValueError(
                f"`k` must be at most height * width = {height * width}, the "
                "number of activations of a channel. "
                f"Received: k={self.k}, input_shape={tuple(input_shape)}. "
                "Use a smaller `k` or larger images."
            )

    def call(self, inputs):
        # The maximum needs no sorting and no transposition.
        if self.k == 1:
            return ops.max(inputs, axis=spatial_axes(self.data_format))
        if self.data_format == "channels_last":
            inputs = ops.transpose(inputs, (0, 3, 1, 2))
        _, channels, height, width = ops.shape(inputs)
        activations = ops.reshape(inputs, (-1, channels, height * width))
        largest, _ = ops.top_k(activations, k=self.k, sorted=False)
        wide = keras.backend.result_type(largest.dtype, "float32")
        mean = ops.mean(ops.cast(largest, wide), axis=-1)
        return ops.cast(mean, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return pooled_shape(input_shape, self.data_format)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}
