"""The sum of average and max pooling, as Proxy-Anchor uses it."""

import keras
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.ops.data_format import (
    pooled_shape,
    spatial_axes,
    standardize_data_format,
)


@keras.saving.register_keras_serializable(package="keras_dml")
class GlobalAveragePlusMaxPooling2D(keras.layers.Layer):
    """Adds global average and global max pooling.

    `y_c = mean of x_{hwc} over h, w + max of x_{hwc} over h, w`. The layer
    has no weights, does not support masking, and adds in float32 under half
    precision.

    Args:
        data_format: `"channels_last"` or `"channels_first"`. Defaults to
            `None`, which means `keras.config.image_data_format()`.
        **kwargs: Base layer arguments, such as `name` and `dtype`.

    Input shape:
        4D tensor `(batch, height, width, channels)`, or
        `(batch, channels, height, width)` for `"channels_first"`.

    Output shape:
        2D tensor `(batch, channels)` of the layer's compute dtype.

    Example:

    >>> x = np.array([1.0, 5.0, 2.0, 4.0]).reshape(1, 2, 2, 1)
    >>> float(GlobalAveragePlusMaxPooling2D()(x)[0, 0])
    8.0

    Reference:
        Kim, Kim, Cho and Kwak, "Proxy Anchor Loss for Deep Metric Learning",
        2020 (in the authors' code).
    """

    def __init__(self, data_format=None, **kwargs):
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.input_spec = keras.layers.InputSpec(ndim=4)

    def call(self, inputs):
        axes = spatial_axes(self.data_format)
        wide = keras.backend.result_type(inputs.dtype, "float32")
        mean = ops.mean(ops.cast(inputs, wide), axis=axes)
        largest = ops.cast(ops.max(inputs, axis=axes), wide)
        return ops.cast(mean + largest, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return pooled_shape(input_shape, self.data_format)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}
