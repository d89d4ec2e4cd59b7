"""Embeds image files with TensorFlow ops only, for a SavedModel.

The ops use no Python callback, because the process that loads the model has
neither Pillow nor keras_dml. A file of a few kilobytes may hold more pixels
than fit into memory, so its header is read before it is decoded.
"""

from collections.abc import Callable

import tensorflow as tf

from keras_dml.data import decoding
from keras_dml.data.image_fit import ImageFit, decode_readable
from keras_dml.data.orientation import exif_orientation, turn_upright
from keras_dml.export.gif_ops import decode_first_frame
from keras_dml.export.image_header import (
    count_pixels,
    declare_transparency,
    is_opaque_animation,
    number,
    octets_of,
    starts_with,
)


def decode_image(contents, max_pixels: int = decoding.MAX_PIXELS) -> tf.Tensor:
    """Decodes JPEG, PNG, GIF, BMP and WebP, or an animation's first frame.

    Transparent pixels are blended with white, and the EXIF orientation of
    JPEG, PNG and WebP is applied, as in training. Of BMP, only uncompressed
    files of 8, 24 or 32 bits are decoded.

    Args:
        contents: Scalar string tensor, the bytes of the file.
        max_pixels: Integer. Larger images raise an error when their header is
            read, before they take memory. All frames of an animated WebP
            count. Defaults to 89,478,485, as in training.

    Returns:
        uint8 tensor `(height, width, 3)`.

    Raises:
        tf.errors.InvalidArgumentError: If the image is damaged or too large,
            or a BMP of another kind.
    """
    pixels = count_pixels(contents)
    small_enough = tf.debugging.Assert(
        pixels <= max_pixels,
        ["The image has too many pixels:", pixels, "of at most", max_pixels],
    )
    # The dependency makes the decoders run after the assertion.
    with tf.control_dependencies([small_enough]):
        contents = tf.identity(contents)
    image = tf.case(
        [
            (tf.io.is_jpeg(contents), lambda: _decode_jpeg(contents)),
            (starts_with(contents, b"\x89PNG"), lambda: _decode_png(contents)),
            (starts_with(contents, b"BM"), lambda: _decode_bmp(contents)),
            (_is_webp(contents), lambda: _decode_webp(contents)),
        ],
        default=lambda: decode_first_frame(contents),
    )
    image = turn_upright(image, exif_orientation(contents))
    return tf.ensure_shape(image, (None, None, 3))


def embed_image_bytes(
    embed: Callable[[tf.Tensor], tf.Tensor],
    contents,
    fit: ImageFit,
    max_pixels: int = decoding.MAX_PIXELS,
) -> dict[str, tf.Tensor]:
    """Embeds image files as the evaluation does.

    Args:
        embed: Function of float32 images `(batch, *fit.shape)` that returns
            embeddings.
        contents: String tensor `(batch,)`, the bytes of image files of any
            size.
        fit: `ImageFit` that resizes and crops them.
        max_pixels: Integer; larger images are not decoded. Defaults to
            89,478,485, as in training.

    Returns:
        Dict of "embedding", float32 `(batch, dim)`, and "ok", bool
        `(batch,)`: whether the image could be decoded. If not, its embedding
        is zero.
    """
    count = tf.size(contents)
    rows, images = decode_readable(
        contents, lambda one: fit.fit(decode_image(one, max_pixels)), fit.shape
    )
    # A convolution fails on an empty batch. So if all images are bad, the
    # spare image is embedded, and its row is cut off.
    good = tf.maximum(tf.size(rows) - 1, 1)
    rows, images = rows[:good, None], images[:good]
    embeddings = embed(images)
    marks = tf.ones((good,), tf.int32)
    dim = embeddings.shape[-1]
    return {
        "embedding": tf.scatter_nd(rows, embeddings, (count + 1, dim))[:-1],
        "ok": tf.scatter_nd(rows, marks, (count + 1,))[:-1] > 0,
    }


def _decode_jpeg(contents):
    with tf.control_dependencies([decoding.check_scans(contents)]):
        return decoding.decode_jpeg(contents)


def _is_webp(contents):
    return tf.strings.substr(contents, 8, 4) == b"WEBP"


def _decode_png(contents):
    image = tf.io.decode_png(contents, channels=4)
    alpha = image[..., 3:]
    # For depths below 8 bits, TensorFlow gives opaque pixels the largest alpha
    # of that depth, such as 1.
    depth = tf.io.decode_raw(tf.strings.substr(contents, 24, 1), tf.uint8)[0]
    opaque = tf.cast(2 ** tf.minimum(tf.cast(depth, tf.int32), 8) - 1, tf.uint8)

    def blend():
        whole = tf.where(alpha == opaque, tf.constant(255, tf.uint8), alpha)
        return _on_white(tf.concat([image[..., :3], whole], axis=-1))

    # Most images are opaque, and blending takes several times the memory.
    return tf.cond(
        tf.reduce_all(alpha == opaque), lambda: image[..., :3], blend
    )


def _on_white(image):
    # The product of two values of 8 bits fits into 16 bits.
    return decoding.on_white(tf.cast(image, tf.uint16))


def _decode_webp(contents):
    # TensorFlow decodes animations to four channels, and takes them for three
    # where the file declares no transparency.
    opaque = is_opaque_animation(contents)
    contents = tf.cond(
        opaque, lambda: declare_transparency(contents), lambda: contents
    )
    image = tf.io.decode_webp(contents)[0]
    transparent = (tf.shape(image)[-1] == 4) & ~opaque
    return tf.cond(
        transparent, lambda: _on_white(image), lambda: image[..., :3]
    )


def _decode_bmp(contents):
    """Decodes the kinds of BMP that TensorFlow reads, and a palette of 8 bits.

    TensorFlow would also take compressed bytes, and indices, for colors.
    """
    octets = octets_of(tf.strings.substr(contents, 0, 54))
    offset, size, bits, compression, colors = (
        number(octets, at, count)
        for at, count in ((10, 4), (14, 4), (28, 2), (30, 4), (46, 4))
    )
    palette = 14 + size
    colors = tf.where(colors == 0, tf.constant(256, tf.int64), colors)
    has_palette = bits == 8
    fits = (colors <= 256) & (palette + 4 * colors <= offset)
    known = tf.debugging.Assert(
        (size >= 40)
        & (compression == 0)
        & tf.reduce_any(bits == [8, 24, 32])
        & (fits | ~has_palette),
        ["The BMP must be uncompressed and have 8, 24 or 32 bits:", octets],
    )
    with tf.control_dependencies([known]):
        image = tf.io.decode_bmp(contents)

    def colored():
        blue_first = tf.io.decode_raw(
            tf.strings.substr(contents, palette, 4 * colors), tf.uint8
        )
        table = tf.reshape(blue_first, [-1, 4])[:, 2::-1]
        return tf.gather(table, tf.cast(image[..., 0], tf.int32))

    return tf.cond(has_palette, colored, lambda: image[..., :3])
