"""Embeds image files with TensorFlow ops only, for a SavedModel.

The ops use no Python callback, because the process that loads the model has
neither Pillow nor keras_dml. A file of a few kilobytes may hold more pixels
than fit into memory, so its header is read before it is decoded.
"""

import functools
from collections.abc import Callable

import tensorflow as tf

from keras_dml.data import decoding
from keras_dml.data.image_fit import ImageFit, decode_readable
from keras_dml.data.orientation import exif_orientation, turn_upright

# Blocks of a GIF have up to 255 bytes. Reading a million small ones would take
# a minute; a file that has more is cut off here, and does not decode.
MOST_BLOCKS = 100_000


def decode_image(contents, max_pixels: int = decoding.MAX_PIXELS) -> tf.Tensor:
    """Decodes JPEG, PNG, GIF, BMP and WebP, or an animation's first frame.

    Transparent pixels of PNG and WebP are blended with white, and the EXIF
    orientation of JPEG, PNG and WebP is applied, as in training.

    Args:
        contents: Scalar string tensor, the bytes of the file.
        max_pixels: Integer. Larger images raise an error when their header is
            read, before they take memory. All frames of an animated WebP
            count. Defaults to 89,478,485, as in training.

    Returns:
        uint8 tensor `(height, width, 3)`.

    Raises:
        tf.errors.InvalidArgumentError: If the image is damaged or too large.
    """
    contents = tf.cond(
        _starts_with(contents, b"GIF8"),
        lambda: first_gif_frame(contents),
        lambda: contents,
    )
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
            (_starts_with(contents, b"\x89PNG"), lambda: _decode_png(contents)),
            (_is_webp(contents), lambda: _decode_webp(contents)),
        ],
        default=lambda: tf.io.decode_image(
            contents, channels=3, expand_animations=False
        ),
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


def _starts_with(contents, start):
    return tf.strings.substr(contents, 0, len(start)) == start


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
    image = tf.io.decode_webp(contents)[0]
    has_alpha = tf.shape(image)[-1] == 4
    return tf.cond(has_alpha, lambda: _on_white(image), lambda: image)


def count_pixels(contents) -> tf.Tensor:
    """Counts the pixels of all frames that decoding a file gives.

    Args:
        contents: Scalar string tensor, the bytes of a JPEG, PNG, GIF or WebP
            file. A GIF must hold only its first frame, see
            `first_gif_frame`.

    Returns:
        int64 scalar; 0 for other formats. TensorFlow decodes only one of
        them, BMP, which is not compressed: a small file is a small image.

    Raises:
        tf.errors.OpError: If the file ends within its header.
    """
    counts = {
        b"\xff\xd8\xff": _jpeg_pixels,
        b"\x89PNG": _png_pixels,
        b"GIF8": _gif_pixels,
        b"RIFF": _webp_pixels,
    }
    return tf.case(
        [
            (_starts_with(contents, start), functools.partial(count, contents))
            for start, count in counts.items()
        ],
        default=lambda: tf.constant(0, tf.int64),
    )


def first_gif_frame(contents) -> tf.Tensor:
    """Cuts off a GIF after its first frame.

    TensorFlow would hold all frames of an animation in memory to return the
    first.

    Args:
        contents: Scalar string tensor, the bytes of a GIF file.

    Returns:
        Scalar string tensor, a GIF of one frame.

    Raises:
        tf.errors.OpError: If the file has no complete frame.
    """
    octets = _octets(contents)
    frame = _first_frame(octets)
    # A frame is a descriptor of 10 bytes, a palette, one byte for the size of
    # the codes, and the codes.
    codes = frame + 10 + _palette_length(octets[frame + 9]) + 1
    stop = _skip_blocks(octets, codes)
    return tf.strings.join([tf.strings.substr(contents, 0, stop), b";"])


def _jpeg_pixels(contents):
    shape = tf.io.extract_jpeg_shape(contents, output_type=tf.int32)
    return _product(shape[0], shape[1])


def _png_pixels(contents):
    sides = tf.io.decode_raw(
        tf.strings.substr(contents, 16, 8), tf.int32, little_endian=False
    )
    return _product(sides[0], sides[1])


def _gif_pixels(contents):
    """Counts canvas and frame, because both are held in memory."""
    octets = _octets(contents)
    frame = _first_frame(octets)
    canvas = _product(_number(octets, 6, 2), _number(octets, 8, 2))
    width, height = (_number(octets, frame + at, 2) for at in (5, 7))
    return canvas + _product(width, height)


def _webp_pixels(contents):
    """Reads the size from the first chunk: lossy, lossless or extended."""
    octets = _octets(tf.strings.substr(contents, 0, 30))
    # "ANMF" starts each frame of an animation; a still image has none.
    pieces = tf.strings.split(contents, "ANMF")
    frames = tf.maximum(tf.size(pieces, out_type=tf.int64) - 1, 1)

    def lossless():
        # Two numbers of 14 bits.
        bits = _number(octets, 21, 4)
        return _product(bits % 2**14 + 1, bits // 2**14 % 2**14 + 1)

    def extended():
        return _product(_number(octets, 24, 3) + 1, _number(octets, 27, 3) + 1)

    def lossy():
        width, height = (_number(octets, at, 2) for at in (26, 28))
        return _product(width % 2**14, height % 2**14)

    kind = tf.strings.substr(contents, 12, 4)
    image = tf.case(
        [(kind == b"VP8L", lossless), (kind == b"VP8X", extended)],
        default=lossy,
    )
    return frames * image


def _first_frame(octets):
    """Returns the place of the first image descriptor of a GIF."""
    start = 13 + _palette_length(octets[10])
    # Extensions, such as the delay of a frame, precede the descriptor: two
    # bytes, then blocks up to an empty one.
    frame, _ = tf.while_loop(
        lambda at, inside: inside | (octets[at] == 0x21),
        lambda at, inside: (
            at + tf.where(inside, 1 + octets[at], 2),
            ~inside | (octets[at] != 0),
        ),
        (start, tf.constant(False)),
        maximum_iterations=MOST_BLOCKS,
    )
    found = tf.debugging.Assert(octets[frame] == 0x2C, ["no frame in the GIF"])
    with tf.control_dependencies([found]):
        return tf.identity(frame)


def _skip_blocks(octets, start):
    """Returns the place after a sequence of length-prefixed blocks."""
    (stop,) = tf.while_loop(
        lambda at: octets[at] != 0,
        lambda at: (at + 1 + octets[at],),
        (start,),
        maximum_iterations=MOST_BLOCKS,
    )
    return stop + 1


def _palette_length(flags):
    return tf.where(flags >= 128, 3 * 2 ** (flags % 8 + 1), 0)


def _octets(contents):
    return tf.cast(tf.io.decode_raw(contents, tf.uint8), tf.int32)


def _number(octets, start, count):
    """Reads a little-endian number of `count` bytes."""
    scale = tf.constant([256**place for place in range(count)], tf.int64)
    part = tf.cast(octets[start : start + count], tf.int64)
    # Fails if the end of the file cuts the slice short.
    return tf.reduce_sum(tf.ensure_shape(part, [count]) * scale)


def _product(height, width):
    return tf.cast(height, tf.int64) * tf.cast(width, tf.int64)
