"""Decodes the first frame of a GIF with TensorFlow ops, as training does."""

import tensorflow as tf

from keras_dml.export.image_header import (
    MOST_BLOCKS,
    first_gif_frame,
    gif_sides,
    octets_of,
    palette_length,
)

_GRAY = bytes(shade for shade in range(256) for _ in range(3))


def decode_first_frame(contents) -> tf.Tensor:
    """Decodes the first frame of a GIF, on its canvas.

    TensorFlow would hold all frames of an animation in memory, and it knows
    neither transparent colors nor frames that are smaller than their canvas.
    So it decodes the colors' indices only, see `index_gif`.

    Args:
        contents: Scalar string tensor, the bytes of the file.

    Returns:
        uint8 tensor `(height, width, 3)`. Transparent pixels are white. What
        the frame leaves free of the canvas is transparent or, in a frame
        without a transparent color, of the first color, as in Pillow.

    Raises:
        tf.errors.OpError: If the file has no complete frame.
    """
    octets = octets_of(contents)
    frame, transparent = first_gif_frame(octets)
    indices = tf.io.decode_gif(index_gif(contents, octets, frame))[0, ..., 0]
    corner, sides, canvas = gif_sides(octets, frame)
    indices = tf.pad(
        indices,
        tf.stack([corner, canvas - corner - sides], axis=1),
        constant_values=tf.cast(tf.maximum(transparent, 0), tf.uint8),
    )
    colors = _palette(contents, octets, frame)
    is_transparent = tf.range(tf.shape(colors)[0]) == transparent
    colors = tf.where(
        is_transparent[:, None], tf.constant(255, tf.uint8), colors
    )
    return tf.gather(colors, tf.cast(indices, tf.int32))


def index_gif(contents, octets, frame) -> tf.Tensor:
    """Makes a GIF whose shades of gray are the indices of a frame's colors.

    Args:
        contents: Scalar string tensor, the bytes of a GIF.
        octets: int32 tensor, the same bytes.
        frame: int32 scalar, the place of the descriptor of a frame.

    Returns:
        Scalar string tensor, a GIF that holds this frame only.
    """
    # A frame is a descriptor of 10 bytes, a palette, one byte for the size of
    # the codes, and the codes.
    start = frame + 10 + palette_length(octets[frame + 9])
    stop = _skip_blocks(octets, start + 1)
    sides = tf.strings.substr(contents, frame + 5, 4)
    interlaced = octets[frame + 9] // 0x40 % 2 == 1
    return tf.strings.join(
        [
            *(b"GIF89a", sides, b"\xf7\0\0", _GRAY),
            *(b",\0\0\0\0", sides, tf.where(interlaced, b"\x40", b"\0")),
            *(tf.strings.substr(contents, start, stop - start), b";"),
        ]
    )


def _palette(contents, octets, frame):
    """Reads the colors of a frame: its own, or those of the file."""
    own = palette_length(octets[frame + 9])
    start = tf.where(own > 0, frame + 10, 13)
    length = tf.where(own > 0, own, palette_length(octets[10]))
    colors = tf.io.decode_raw(
        tf.strings.substr(contents, start, length), tf.uint8
    )
    return tf.reshape(colors, [-1, 3])


def _skip_blocks(octets, start):
    """Returns the place after a sequence of length-prefixed blocks."""
    (stop,) = tf.while_loop(
        lambda at: octets[at] != 0,
        lambda at: (at + 1 + octets[at],),
        (start,),
        maximum_iterations=MOST_BLOCKS,
    )
    return stop + 1
