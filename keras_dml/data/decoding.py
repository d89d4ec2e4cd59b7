"""Decodes the bytes of an image file to pixels.

TensorFlow decodes JPEG (including gray and CMYK) and PNG of 8 or 16 bits,
with exactly the pixels that Pillow gives. Pillow decodes everything else,
such as GIF, BMP, WebP and TIFF. An animation gives its first frame,
transparent pixels are blended with white, and 16-bit values keep their upper
8 bits. A truncated file raises an error; it never gives a half-gray image.
Pixels are turned upright as the EXIF orientation says.

The size is read from the header first, and an image of more than `MAX_PIXELS`
pixels raises an error: a file of a few kilobytes may hold more pixels than
fit into memory.
"""

import contextlib
import io
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from keras_dml.data.image_file import MAX_PIXELS, open_image
from keras_dml.data.orientation import (
    exif_orientation,
    stored_box,
    turn_upright,
    upright_shape,
)

# A progressive JPEG has about ten; the previews inside a file count too.
MAX_SCANS = 64
_RATIOS = (1, 2, 4, 8)


def decode(
    contents, channels: int = 3, max_pixels: int = MAX_PIXELS
) -> tf.Tensor:
    """Decodes an image file and turns it upright.

    Args:
        contents: Scalar string tensor, the bytes of the file.
        channels: 3 for RGB or 1 for luma. Defaults to `3`.
        max_pixels: Integer. Larger images raise an error before they are
            decoded. Defaults to 89,478,485, which is 256 MiB of RGB. The
            formats that Pillow decodes are limited to twice that default,
            even if `max_pixels` is larger.

    Returns:
        uint8 tensor `(height, width, channels)`.

    Raises:
        tf.errors.OpError: If the image is damaged or too large.
    """

    def decode_checked_jpeg():
        shape = tf.io.extract_jpeg_shape(contents)[:2]
        checked = [_check_size(shape, max_pixels), check_scans(contents)]
        with tf.control_dependencies(checked):
            return decode_jpeg(contents)

    image = tf.cond(
        tf.io.is_jpeg(contents),
        decode_checked_jpeg,
        lambda: _decode_other(contents, max_pixels),
    )
    image = turn_upright(image, exif_orientation(contents))
    image.set_shape((None, None, 3))
    return to_channels(image, channels)


# The same for tensors, traced once: each pipeline of a run needs it. Bytes of
# Python would be traced anew for every file.
traced_decode = tf.function(decode, autograph=False)


def decode_jpeg(contents) -> tf.Tensor:
    """Decodes a JPEG to uint8 RGB, with the same pixels on every machine.

    They are in the order in which the file stores them, not turned upright.
    """
    return tf.io.decode_jpeg(
        contents, channels=3, dct_method="INTEGER_ACCURATE"
    )


def is_png(contents) -> tf.Tensor:
    """Returns whether a file begins as a PNG does, with its size."""
    begins = tf.strings.substr(contents, 0, 4) == b"\x89PNG"
    return begins & (tf.strings.length(contents) > 24)


def png_sides(contents) -> tf.Tensor:
    """Returns width and height in the header of a PNG."""
    sides = tf.strings.substr(contents, 16, 8)
    return tf.io.decode_raw(sides, tf.int32, little_endian=False)


def check_scans(contents) -> tf.Operation:
    """Returns an op that fails if a JPEG has more scans than any camera makes.

    Each scan goes over all pixels: a small file of thousands takes minutes.
    """
    # A search, which is faster than comparing every byte. The third one begins
    # the length of a scan's header. Without it a film behind the photo, where
    # any two bytes come often, would have scans.
    parts = tf.raw_ops.StringSplitV2(
        input=[contents], sep=b"\xff\xda\x00", maxsplit=MAX_SCANS + 1
    )
    scans = tf.size(parts.values) - 1
    return tf.raw_ops.Assert(
        condition=scans <= MAX_SCANS, data=["too many scans", scans]
    )


def on_white(image) -> tf.Tensor:
    """Blends an int32 RGBA image with white and returns it as uint8 RGB."""
    color, alpha = image[..., :3], image[..., 3:]
    # Adding 127 rounds to the nearest integer, as Pillow does.
    blended = (color * alpha + 255 * (255 - alpha) + 127) // 255
    return tf.cast(blended, tf.uint8)


def decode_and_crop(
    contents, box_of: Callable, channels: int = 3, least_side: int | None = None
) -> tf.Tensor:
    """Decodes the part of the upright image that a box covers.

    Args:
        contents: Scalar string tensor, the bytes of the file.
        box_of: Function of an int32 tensor (height, width) that returns an
            int32 tensor (top, left, height, width).
        channels: 3 for RGB or 1 for luma. Defaults to `3`.
        least_side: Integer. If the box of a JPEG is at least 2, 4 or 8 times
            as large as this, decoding shrinks it by that factor, which is
            faster and averages pixels. Defaults to `None`, which never
            shrinks.

    Returns:
        uint8 tensor `(height, width, channels)`.
    """

    orientation = exif_orientation(contents)

    def crop_jpeg():
        shape = tf.io.extract_jpeg_shape(contents)[:2]
        shape = upright_shape(shape, orientation)
        checked = [_check_size(shape, MAX_PIXELS), check_scans(contents)]
        with tf.control_dependencies(checked):
            box = stored_box(box_of(shape), shape, orientation)
        if least_side is None:
            return _crop_jpeg(contents, box, 1)
        times = tf.reduce_min(box[2:]) // least_side
        return tf.switch_case(
            tf.reduce_sum(tf.cast(times >= _RATIOS[1:], tf.int32)),
            [
                lambda ratio=ratio: _crop_jpeg(contents, box, ratio)
                for ratio in _RATIOS
            ],
        )

    def crop_other():
        image = _decode_other(contents, MAX_PIXELS)
        shape = upright_shape(tf.shape(image)[:2], orientation)
        return crop_box(image, stored_box(box_of(shape), shape, orientation))

    image = tf.cond(tf.io.is_jpeg(contents), crop_jpeg, crop_other)
    image = turn_upright(image, orientation)
    image.set_shape((None, None, 3))
    return to_channels(image, channels)


def crop_box(image, box) -> tf.Tensor:
    """Returns the part of an image that a box covers.

    Args:
        image: Tensor `(height, width, channels)`.
        box: int32 tensor (top, left, height, width).
    """
    top, left, height, width = tf.unstack(box)
    return image[top : top + height, left : left + width]


def to_channels(images, channels: int) -> tf.Tensor:
    """Turns RGB into luma or repeats luma three times.

    Args:
        images: Tensor with 1 or 3 channels last.
        channels: 1 or 3.
    """
    if images.shape[-1] == channels:
        return images
    if channels == 1:
        return tf.image.rgb_to_grayscale(images)
    return tf.image.grayscale_to_rgb(images)


def _crop_jpeg(contents, box, ratio):
    return tf.io.decode_and_crop_jpeg(
        contents,
        box // ratio,
        channels=3,
        ratio=ratio,
        dct_method="INTEGER_ACCURATE",
    )


def _check_size(shape, max_pixels):
    """Returns an op that fails if height times width exceeds the limit."""
    # int64, because the product of two sides overflows int32.
    pixels = tf.reduce_prod(tf.cast(shape, tf.int64))
    # `tf.debugging.Assert` adds a condition that costs more than the check.
    return tf.raw_ops.Assert(
        condition=pixels <= max_pixels, data=["too many pixels", pixels]
    )


def _decode_other(contents, max_pixels):
    return tf.cond(
        _is_deep_png(contents),
        lambda: _decode_png(contents, max_pixels),
        lambda: tf.ensure_shape(
            tf.py_function(
                lambda one: _decode_with_pillow(one, max_pixels),
                [contents],
                tf.uint8,
            ),
            (None, None, 3),
        ),
    )


def _is_deep_png(contents):
    """Returns whether the file is a PNG of 8 or 16 bits.

    TensorFlow decodes white in a PNG of 1, 2 or 4 bits to 1, 3 or 15, so
    Pillow decodes those.
    """
    return tf.cond(
        is_png(contents),
        lambda: (
            tf.io.decode_raw(tf.strings.substr(contents, 24, 1), tf.uint8)[0]
            >= 8
        ),
        lambda: False,
    )


def _decode_png(contents, max_pixels):
    checked = _check_size(png_sides(contents), max_pixels)
    with tf.control_dependencies([checked]):
        image = tf.io.decode_png(contents, channels=4)
    # Most images are opaque, and blending takes several times the memory.
    return tf.cond(
        tf.reduce_all(image[..., 3] == 255),
        lambda: image[..., :3],
        lambda: on_white(tf.cast(image, tf.int32)),
    )


def _decode_with_pillow(contents, max_pixels):
    from PIL import Image

    with open_image(io.BytesIO(contents.numpy())) as image:
        width, height = image.size
        if width * height > max_pixels:
            raise ValueError(f"too many pixels: {width * height}")
        if image.mode.startswith("I;16"):
            gray = (np.asarray(image) >> 8).astype(np.uint8)
            return np.repeat(gray[..., None], 3, axis=-1)
        if image.mode in ("I", "F"):
            raise ValueError(
                f"Images must have at most 16 bits. Received: {image.mode}"
            )
        layer = _upright(image).convert("RGBA")
    white = Image.new("RGBA", layer.size, "white")
    return np.asarray(Image.alpha_composite(white, layer).convert("RGB"))


def _upright(image):
    """Turns an image upright if `exif_orientation` cannot read its format."""
    from PIL import ImageOps

    image.load()
    if image.format in ("PNG", "WEBP"):
        return image
    # A damaged tag counts as absent. Pillow raises many kinds of errors.
    with contextlib.suppress(Exception):
        image = ImageOps.exif_transpose(image)
    return image
