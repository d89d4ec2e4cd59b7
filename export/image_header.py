"""Reads the headers of image files with TensorFlow ops.

A file of a few kilobytes may hold more pixels than fit into memory, so they
are counted before it is decoded.
"""

import functools

import tensorflow as tf

# Blocks of a GIF have up to 255 bytes. Reading a million small ones would take
# a minute; a file that has more is cut off here, and does not decode.
MOST_BLOCKS = 100_000


def count_pixels(contents) -> tf.Tensor:
    """Counts the pixels that decoding a file holds in memory.

    Args:
        contents: Scalar string tensor, the bytes of a JPEG, PNG, GIF, BMP or
            WebP file.

    Returns:
        int64 scalar: all frames of a WebP; canvas and first frame of a GIF. 0
        for other formats, which TensorFlow does not decode.

    Raises:
        tf.errors.OpError: If the file ends within its header.
    """
    counts = {
        b"\xff\xd8\xff": _jpeg_pixels,
        b"\x89PNG": _png_pixels,
        b"GIF8": _gif_pixels,
        b"BM": _bmp_pixels,
        b"RIFF": _webp_pixels,
    }
    return tf.case(
        [
            (starts_with(contents, start), functools.partial(count, contents))
            for start, count in counts.items()
        ],
        default=lambda: tf.constant(0, tf.int64),
    )


def starts_with(contents, start: bytes) -> tf.Tensor:
    """Returns whether a file starts with these bytes."""
    return tf.strings.substr(contents, 0, len(start)) == start


def octets_of(contents) -> tf.Tensor:
    """Returns the bytes of a file as an int32 tensor."""
    return tf.cast(tf.io.decode_raw(contents, tf.uint8), tf.int32)


def number(octets, start, count: int) -> tf.Tensor:
    """Reads a little-endian number of `count` bytes, as an int64 scalar.

    Raises:
        tf.errors.OpError: If the file ends before.
    """
    scale = tf.constant([256**place for place in range(count)], tf.int64)
    part = tf.cast(octets[start : start + count], tf.int64)
    # Fails if the end of the file cuts the slice short.
    return tf.reduce_sum(tf.ensure_shape(part, [count]) * scale)


def is_opaque_animation(contents) -> tf.Tensor:
    """Returns whether a WebP is an animation that declares no transparency."""
    extended = tf.strings.substr(contents, 12, 4) == b"VP8X"
    return extended & (_webp_flags(contents) & 0x12 == 0x02)


def declare_transparency(contents) -> tf.Tensor:
    """Sets the flag of transparency in an extended WebP."""
    with_flag = tf.constant([bytes([one | 0x10]) for one in range(256)])
    flags = tf.gather(with_flag, _webp_flags(contents))
    before = tf.strings.substr(contents, 0, 20)
    return tf.strings.join([before, flags, tf.strings.substr(contents, 21, -1)])


def first_gif_frame(octets) -> tuple[tf.Tensor, tf.Tensor]:
    """Finds the first frame of a GIF.

    Args:
        octets: int32 tensor, the bytes of the file.

    Returns:
        Tuple of two int32 scalars: the place of the frame's descriptor, and
        the index of its transparent color, or -1.

    Raises:
        tf.errors.OpError: If the file has no frame.
    """
    # A "graphic control" whose flag says that a color is transparent. Looked
    # for at once, since the loop below is slow.
    controls = (
        (octets[:-6] == 0x21) & (octets[1:-5] == 0xF9) & (octets[3:-3] % 2 == 1)
    )

    def step(at, inside, control):
        here = octets[at]
        return (
            at + tf.where(inside, 1 + here, 2),
            ~inside | (here != 0),
            tf.where(~inside & controls[at], at, control),
        )

    # Extensions, such as the delay of a frame, precede the descriptor: two
    # bytes, then blocks up to an empty one.
    frame, _, control = tf.while_loop(
        lambda at, inside, _: inside | (octets[at] == 0x21),
        step,
        (13 + palette_length(octets[10]), tf.constant(False), tf.constant(-1)),
        maximum_iterations=MOST_BLOCKS,
    )
    found = tf.debugging.Assert(octets[frame] == 0x2C, ["no frame in the GIF"])
    with tf.control_dependencies([found]):
        transparent = tf.where(control < 0, -1, octets[control + 6])
        return tf.identity(frame), transparent


def gif_sides(octets, frame) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Reads where a frame of a GIF lies.

    Args:
        octets: int32 tensor, the bytes of the file.
        frame: int32 scalar, the place of the frame's descriptor.

    Returns:
        Tuple of three int64 tensors: (top, left) of the frame, and (height,
        width) of the frame and of the canvas, which grows to hold it.
    """

    def pair(start):
        return tf.stack([number(octets, start + at, 2) for at in (2, 0)])

    corner, sides = pair(frame + 1), pair(frame + 5)
    return corner, sides, tf.maximum(pair(6), corner + sides)


def palette_length(flags) -> tf.Tensor:
    """Returns the number of bytes of the palette of a GIF, or of its frame."""
    return tf.where(flags >= 128, 3 * 2 ** (flags % 8 + 1), 0)


def _jpeg_pixels(contents):
    shape = tf.io.extract_jpeg_shape(contents, output_type=tf.int32)
    return _product(shape[:2])


def _png_pixels(contents):
    sides = tf.io.decode_raw(
        tf.strings.substr(contents, 16, 8), tf.int32, little_endian=False
    )
    return _product(sides)


def _gif_pixels(contents):
    """Counts canvas and frame, because both are held in memory."""
    octets = octets_of(contents)
    frame, _ = first_gif_frame(octets)
    _, sides, canvas = gif_sides(octets, frame)
    return _product(canvas) + _product(sides)


def _bmp_pixels(contents):
    sides = tf.io.decode_raw(tf.strings.substr(contents, 18, 8), tf.int32)
    # The height of a file that starts with its upper row is negative.
    return tf.abs(_product(tf.ensure_shape(sides, [2])))


def _webp_pixels(contents):
    """Reads the size from the first chunk: lossy, lossless or extended."""
    octets = octets_of(tf.strings.substr(contents, 0, 30))
    # "ANMF" starts each frame of an animation; a still image has none.
    pieces = tf.strings.split(contents, "ANMF")
    frames = tf.maximum(tf.size(pieces, out_type=tf.int64) - 1, 1)

    def lossless():
        # Two numbers of 14 bits.
        bits = number(octets, 21, 4)
        return _product([bits % 2**14 + 1, bits // 2**14 % 2**14 + 1])

    def extended():
        return _product([number(octets, at, 3) + 1 for at in (24, 27)])

    def lossy():
        return _product([number(octets, at, 2) % 2**14 for at in (26, 28)])

    kind = tf.strings.substr(contents, 12, 4)
    image = tf.case(
        [(kind == b"VP8L", lossless), (kind == b"VP8X", extended)],
        default=lossy,
    )
    return frames * image


def _webp_flags(contents):
    return octets_of(tf.strings.substr(contents, 20, 1))[0]


def _product(sides):
    return tf.reduce_prod(tf.cast(sides, tf.int64))
