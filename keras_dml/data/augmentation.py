"""Changes training images at random, as functions of given random numbers.

`draws` computes the random numbers from (seed, epoch, step) in numpy; every
other function here uses TensorFlow without any random state. So a batch is
the same whether or not the run was interrupted before it, and for any number
of threads.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
import tensorflow as tf

from keras_dml.checks import (
    boolean,
    in_interval,
    one_of,
    optional,
    positive_integer,
    positive_number,
    require,
)
from keras_dml.data.decoding import to_channels

CROP_TRIES = 10
AREA_DRAWS = slice(0, CROP_TRIES)
ASPECT_DRAWS = slice(CROP_TRIES, 2 * CROP_TRIES)
PLACE_DRAWS = slice(2 * CROP_TRIES, 2 * CROP_TRIES + 2)
_FLIP = 22
_AFFINE = slice(23, 28)
_COLOR = slice(28, 31)
NUM_DRAWS = 31


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """Defines how training images are changed at random.

    Args:
        crop: `"random_resized"` (a box of random area and aspect ratio),
            `"random"` (a box of the final size, at a random place of the
            resized image) or `"center"` (no randomness). Defaults to
            `"random_resized"`.
        area: Pair of floats in (0, 1], the range of the part of the image
            that a `"random_resized"` box covers. Defaults to `(0.08, 1.0)`.
        aspect: Pair of positive floats, the range of width / height of a
            `"random_resized"` box, drawn log-uniformly. Defaults to
            `(3/4, 4/3)`.
        resize: Integer, the shorter side before a `"random"` or `"center"`
            crop. Defaults to the final size.
        squash: Boolean, whether this resizing makes the image square instead
            of keeping its proportions. Defaults to `False`.
        antialias: Boolean, whether shrinking a `"random_resized"` box
            averages pixels, as torchvision does. `False` leaves pixels out,
            which is faster. In both cases JPEG decoding itself shrinks a box
            that is at least twice as large as the result. Defaults to
            `True`.
        flip: Boolean, whether each image is mirrored with probability 0.5.
            Defaults to `False`.
        rotation: Float, the largest angle in degrees, in both directions.
            Defaults to `0.0`.
        translation: Float in [0, 1), the largest shift in each direction, as
            a part of the side. Defaults to `0.0`.
        scale: Pair of positive floats, the range of the magnification.
            Defaults to `(1.0, 1.0)`.
        shear: Float, the largest angle in degrees, in both directions.
            Defaults to `0.0`.
        fill: Float in 0..255 that fills the pixels that rotation,
            translation, scale and shear uncover, or `"edge"` for the nearest
            pixel of the image. Defaults to `0.0`.
        brightness: Float in [0, 1], the largest difference of the brightness
            factor from 1. Defaults to `0.0`.
        contrast: Float in [0, 1], the largest difference of the contrast
            factor from 1. Defaults to `0.0`.
        saturation: Float in [0, 1], the largest difference of the saturation
            factor from 1. Defaults to `0.0`.

    Raises:
        UsageError: If a value is out of its range.

    Example:

    >>> Augmentation(crop="center", rotation=10.0).has_affine
    True
    """

    crop: Literal["random_resized", "random", "center"] = "random_resized"
    area: tuple[float, float] = (0.08, 1.0)
    aspect: tuple[float, float] = (3 / 4, 4 / 3)
    resize: int | None = None
    squash: bool = False
    antialias: bool = True
    flip: bool = False
    rotation: float = 0.0
    translation: float = 0.0
    scale: tuple[float, float] = (1.0, 1.0)
    shear: float = 0.0
    fill: float | Literal["edge"] = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0

    def __post_init__(self):
        one_of("crop", self.crop, ("random_resized", "random", "center"))
        for name in ("area", "aspect", "scale"):
            _check_range(name, getattr(self, name))
        for name in ("squash", "antialias", "flip"):
            boolean(name, getattr(self, name))
        optional(positive_integer, "resize", self.resize)
        in_interval("translation", self.translation, 0, 1, closed="left")
        if self.fill != "edge":
            advice = "Or give 'edge', for the nearest pixel of the image."
            in_interval("fill", self.fill, 0, 255, "both", advice)
        upper = {"rotation": 180, "shear": 89}
        for name in (*upper, "brightness", "contrast", "saturation"):
            most = upper.get(name, 1)
            in_interval(name, getattr(self, name), 0, most, "both")

    @property
    def has_affine(self) -> bool:
        """Whether images are rotated, shifted, scaled or sheared."""
        return bool(
            self.rotation
            or self.translation
            or self.shear
            or tuple(self.scale) != (1.0, 1.0)
        )

    @property
    def has_color(self) -> bool:
        """Whether brightness, contrast or saturation change."""
        return bool(self.brightness or self.contrast or self.saturation)


def _check_range(name, value):
    limit, most = ("", math.inf) if name != "area" else (" at most 1", 1)
    wanted = f"a pair of positive numbers{limit}, the smaller first"
    pair = isinstance(value, Sequence) and len(value) == 2
    require(pair, name, wanted, value)
    low, high = (positive_number(name, one, f"Give {wanted}.") for one in value)
    require(low <= high <= most, name, wanted, value)


def draws(seed: int, epoch: int, step: int, count: int) -> np.ndarray:
    """Draws uniform numbers in [0, 1) for every image of a batch.

    Args:
        seed: Non-negative integer.
        epoch: Non-negative integer.
        step: Non-negative integer, the batch's number within the epoch.
        count: Integer, the number of images in the batch.

    Returns:
        float32 array `(count, NUM_DRAWS)`.
    """
    generator = np.random.default_rng((seed, epoch, step))
    return generator.random((count, NUM_DRAWS), dtype=np.float32)


def places(draw) -> tf.Tensor:
    """Returns the places of `"random"` crops.

    Args:
        draw: float32 tensor `(..., NUM_DRAWS)`.

    Returns:
        float32 tensor `(..., 2)` in [0, 1).
    """
    return draw[..., PLACE_DRAWS]


def flips(draw) -> tf.Tensor:
    """Returns a Boolean tensor that marks the images to mirror.

    Args:
        draw: float32 tensor `(..., NUM_DRAWS)`.
    """
    return draw[..., _FLIP] < 0.5


def quarter_turns(images, turns) -> tf.Tensor:
    """Turns every image counterclockwise, as `np.rot90` does.

    Args:
        images: Tensor `(batch, side, side, channels)`.
        turns: Integer tensor `(batch,)`, the number of turns: 0 to 3.
    """
    turns = turns[:, None, None, None]
    once = tf.reverse(tf.transpose(images, [0, 2, 1, 3]), [1])
    images = tf.where(turns % 2 == 1, once, images)
    return tf.where(turns >= 2, tf.reverse(images, [1, 2]), images)


def random_affine(images, draw, augmentation: Augmentation) -> tf.Tensor:
    """Rotates, scales, shears and shifts every image about its center.

    Args:
        images: float32 tensor `(batch, height, width, channels)`.
        draw: float32 tensor `(batch, NUM_DRAWS)`.
        augmentation: `Augmentation`.

    Returns:
        float32 tensor of the shape of `images`, bilinearly interpolated.
    """
    signed = 2.0 * draw[:, _AFFINE] - 1.0
    low, high = augmentation.scale
    shape = tf.cast(tf.shape(images)[1:3], tf.float32)
    transforms = affine_transforms(
        shape,
        angle=signed[:, 0] * math.radians(augmentation.rotation),
        shift=signed[:, 1:3] * augmentation.translation * shape,
        scale=low + (high - low) * draw[:, _AFFINE][:, 3],
        shear=signed[:, 4] * math.radians(augmentation.shear),
    )
    edge = augmentation.fill == "edge"
    return tf.raw_ops.ImageProjectiveTransformV3(
        images=images,
        transforms=transforms,
        output_shape=tf.shape(images)[1:3],
        fill_value=0.0 if edge else float(augmentation.fill),
        interpolation="BILINEAR",
        fill_mode="NEAREST" if edge else "CONSTANT",
    )


def affine_transforms(shape, angle, shift, scale, shear) -> tf.Tensor:
    """Returns matrices that map a place in the result to one in the source.

    `source = inverse(scale * R(angle) @ H(shear)) @ (result - c - shift) + c`
    with `c` the center of the image.

    Args:
        shape: float32 tensor `(2,)`, height and width.
        angle: float32 tensor `(batch,)`, in radians, clockwise on screen.
        shift: float32 tensor `(batch, 2)`, in pixels, down and right.
        scale: float32 tensor `(batch,)`.
        shear: float32 tensor `(batch,)`, in radians, along the width.

    Returns:
        float32 tensor `(batch, 8)` for `ImageProjectiveTransformV3`.
    """
    cos, sin, tan = tf.cos(angle), tf.sin(angle), tf.tan(shear)
    xx, xy = (cos + tan * sin) / scale, (sin - tan * cos) / scale
    yx, yy = -sin / scale, cos / scale
    center_y, center_x = (shape[0] - 1) / 2, (shape[1] - 1) / 2
    from_x, from_y = center_x + shift[:, 1], center_y + shift[:, 0]
    zero = tf.zeros_like(angle)
    return tf.stack(
        [
            xx,
            xy,
            center_x - xx * from_x - xy * from_y,
            yx,
            yy,
            center_y - yx * from_x - yy * from_y,
            zero,
            zero,
        ],
        axis=1,
    )


def random_color(images, draw, augmentation: Augmentation) -> tf.Tensor:
    """Changes brightness, contrast and saturation, in this order.

    Args:
        images: float32 tensor `(batch, height, width, channels)` in 0..255.
        draw: float32 tensor `(batch, NUM_DRAWS)`.
        augmentation: `Augmentation`.

    Returns:
        float32 tensor of the shape of `images`, in 0..255.
    """
    signed = 2.0 * draw[:, _COLOR] - 1.0
    factors = 1.0 + signed * [
        augmentation.brightness,
        augmentation.contrast,
        augmentation.saturation,
    ]
    brightness, contrast, saturation = tf.unstack(
        factors[:, :, None, None, None], axis=1
    )
    if augmentation.brightness:
        images = tf.clip_by_value(images * brightness, 0.0, 255.0)
    if augmentation.contrast:
        gray = to_channels(images, 1)
        mean = tf.reduce_mean(gray, axis=(1, 2), keepdims=True)
        images = tf.clip_by_value(mean + (images - mean) * contrast, 0.0, 255.0)
    if augmentation.saturation:
        gray = to_channels(images, 1)
        images = gray + (images - gray) * saturation
        images = tf.clip_by_value(images, 0.0, 255.0)
    return images
