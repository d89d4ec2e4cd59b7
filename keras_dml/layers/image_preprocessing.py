"""Preprocessing of images inside the model."""

import keras
import numpy as np
from keras import ops

from keras_dml.arguments import own_config
from keras_dml.checks import boolean, one_of

MODES = ("none", "unit", "tf", "torch", "caffe", "affine")

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_DEVIATION = (0.229, 0.224, 0.225)
CAFFE_MEAN_BGR = (103.939, 116.779, 123.68)


def preprocess_images(images, mode, scale=1.0, offset=0.0):
    """Maps images with values in 0..255 to the range a network expects.

    Args:
        images: Tensor `(..., channels)`; three channels in the order RGB for
            `"torch"` and `"caffe"`. Integers become `keras.config.floatx()`.
        mode: One of `"none"`, `"unit"`, `"tf"`, `"torch"`, `"caffe"` and
            `"affine"`, see `ImagePreprocessing`.
        scale: Float, or one for each channel; for `"affine"` only. Defaults
            to `1.0`.
        offset: Float, or one for each channel; for `"affine"` only. Defaults
            to `0.0`.

    Returns:
        Float tensor of the shape of `images`, and of its dtype if that is
        float.

    Example:

    >>> black_and_white = np.array([[[0.0], [255.0]]])
    >>> print(np.ravel(preprocess_images(black_and_white, "tf")))
    [-1.  1.]
    """
    one_of("mode", mode, MODES)
    images = ops.convert_to_tensor(images)
    if not keras.backend.is_float_dtype(images.dtype):
        images = ops.cast(images, keras.config.floatx())
    if mode == "unit":
        return images / 255.0
    if mode == "tf":
        return images / 127.5 - 1.0

    def constant(value):
        return ops.convert_to_tensor(value, dtype=images.dtype)

    if mode == "torch":
        centered = images / 255.0 - constant(IMAGENET_MEAN)
        return centered / constant(IMAGENET_DEVIATION)
    if mode == "caffe":
        return ops.flip(images, axis=-1) - constant(CAFFE_MEAN_BGR)
    if mode == "affine":
        return images * constant(scale) + constant(offset)
    return images


@keras.saving.register_keras_serializable(package="keras_dml")
class ImagePreprocessing(keras.layers.Layer):
    """Maps images with values in 0..255 to the range a network expects.

    The layer is part of the model, so that training, evaluation and every
    exported file share it. It has no weights and computes in float32 under
    any dtype policy: half precision cannot hold the fractional values that
    resizing makes.

    Modes:

    - `"none"`: `x`, for networks that preprocess images themselves.
    - `"unit"`: `x / 255`.
    - `"tf"`: `x / 127.5 - 1`.
    - `"torch"`: `(x / 255 - mean) / deviation`, by channel of ImageNet.
    - `"caffe"`: `x - mean`, by channel of ImageNet, after RGB becomes BGR.
    - `"affine"`: `x * scale + offset`.

    Args:
        mode: String, one of the modes above.
        rgb: Boolean, whether to repeat the channel of gray images three
            times. Images with three channels do not change. Defaults to
            `False`.
        scale: Float, or a sequence with one for each channel; for `"affine"`
            only. Defaults to `1.0`.
        offset: Float, or a sequence with one for each channel; for `"affine"`
            only. Defaults to `0.0`.
        **kwargs: Base layer arguments. `dtype` defaults to `"float32"`.

    Input shape:
        4D tensor `(batch, height, width, channels)` with values in 0..255 and
        one or three channels; one channel needs `rgb=True` in the modes
        `"torch"` and `"caffe"`.

    Output shape:
        4D float32 tensor `(batch, height, width, channels)`.

    Example:

    >>> images = np.full((1, 2, 2, 1), 255.0)
    >>> tuple(ImagePreprocessing("tf", rgb=True)(images).shape)
    (1, 2, 2, 3)
    """

    def __init__(self, mode, rgb=False, scale=1.0, offset=0.0, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.mode = one_of("mode", mode, MODES)
        self.rgb = boolean("rgb", rgb)
        self.scale = _by_channel("scale", scale)
        self.offset = _by_channel("offset", offset)
        if mode != "affine" and (self.scale, self.offset) != (1.0, 0.0):
            raise ValueError(
                '`scale` and `offset` are for `mode="affine"`. '
                f"Received: mode={mode!r}, scale={scale}, offset={offset}"
            )
        self.input_spec = keras.layers.InputSpec(ndim=4)

    def build(self, input_shape):
        channels = self.compute_output_shape(input_shape)[-1]
        if self.mode in ("torch", "caffe") and channels != 3:
            raise ValueError(
                f"`mode={self.mode!r}` needs images of three channels, or gray "
                f"images and `rgb=True`. Received: input_shape={input_shape}"
            )
        for name in ("scale", "offset"):
            values = getattr(self, name)
            if isinstance(values, list) and len(values) != channels:
                raise ValueError(
                    f"`{name}` must have one value for each of the {channels} "
                    f"channels. Received: {name}={values}, "
                    f"input_shape={input_shape}"
                )

    def call(self, inputs):
        # Keras casts floats, but no integers.
        inputs = ops.cast(inputs, self.compute_dtype)
        if self.rgb and inputs.shape[-1] == 1:
            inputs = ops.concatenate([inputs] * 3, axis=-1)
        return preprocess_images(inputs, self.mode, self.scale, self.offset)

    def compute_output_shape(self, input_shape):
        if self.rgb and input_shape[-1] == 1:
            return (*input_shape[:-1], 3)
        return tuple(input_shape)

    def get_config(self):
        return {**super().get_config(), **own_config(self)}


def _by_channel(name, value):
    """Returns a float or a list of floats, which JSON can hold."""
    try:
        if isinstance(value, (list, tuple, np.ndarray)):
            return [float(one) for one in value]
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"`{name}` must be a number, or one for each channel. "
            f"Received: {name}={value!r}"
        ) from None
