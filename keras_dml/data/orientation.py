"""Reads the EXIF orientation of an image file and turns its pixels upright.

A phone stores the pixels as its sensor lies, and says in a tag how to turn
them. TensorFlow's decoders ignore that tag. Everything here is TensorFlow ops,
so that training and an exported model turn an image in the same way.

A damaged or unknown tag counts as absent: it never makes an image unreadable.
"""

import tensorflow as tf

UPRIGHT = 1
# EXIF is one of the first segments of a JPEG, and a segment has at most 64 KiB,
# so the pixels of a large photo need not be searched.
_JPEG_HEAD = 2**18
_MAX_EXIF = 2**16
# An image has tens of segments or chunks. A hostile file may have millions.
_MAX_PARTS = 4096
_ORIENTATION, _SHORT = 0x0112, 3
# Whether rows and columns are reversed, for the orientations 1 to 8. From 5 on
# they are exchanged first.
_FLIPS = [[0, 0], [0, 1], [1, 1], [1, 0], [0, 0], [0, 1], [1, 1], [1, 0]]


def exif_orientation(contents) -> tf.Tensor:
    """Reads the EXIF orientation of a JPEG, PNG or WebP file.

    Args:
        contents: Scalar string tensor, the bytes of the file.

    Returns:
        int32 scalar from 1 to 8. It is 1, upright, if the file has no
        readable orientation or another format.

    Example:

    >>> int(exif_orientation(tf.constant(b"no image")))
    1

    Reference:
        CIPA DC-008-2023, "Exchangeable image file format for digital still
        cameras: Exif Version 3.0", section 4.6.
    """
    is_jpeg = tf.io.is_jpeg(contents)
    is_png = tf.strings.substr(contents, 0, 4) == b"\x89PNG"
    is_webp = tf.strings.substr(contents, 0, 4) == b"RIFF"
    name = tf.where(is_jpeg, b"Exif\0\0", tf.where(is_png, b"eXIf", b"EXIF"))
    length = tf.where(is_jpeg, _JPEG_HEAD, tf.strings.length(contents))
    head = tf.strings.substr(contents, 0, length)
    # Most files lack the name, and a search takes less time than the loop.
    pieces = tf.raw_ops.StringSplitV2(input=[head], sep=name, maxsplit=1)
    return tf.cond(
        tf.size(pieces.values) > 1,
        lambda: _read_orientation(head, is_jpeg, is_png, is_webp),
        lambda: tf.constant(UPRIGHT),
    )


# Inlined, each of its hundreds of ops would be visited also where it is not
# called: a tenth of the time of decoding.
@tf.function(autograph=False, experimental_attributes={"_noinline": True})
def _read_orientation(head, is_jpeg, is_png, is_webp):
    exif = tf.case(
        [
            (is_jpeg, lambda: _find_exif(head, 2, _jpeg_segment)),
            (is_png, lambda: _find_exif(head, 8, _png_chunk)),
            (is_webp, lambda: _find_exif(head, 12, _webp_chunk)),
        ],
        default=lambda: tf.constant(b""),
    )
    return _tiff_orientation(exif)


def turn_upright(image, orientation) -> tf.Tensor:
    """Turns an image as its orientation says.

    Args:
        image: Tensor `(height, width, channels)`, as stored in the file.
        orientation: int32 scalar of `exif_orientation`.

    Returns:
        Tensor `(height, width, channels)`; orientations from 5 on exchange
        height and width.
    """

    def turn():
        turned = tf.cond(
            _is_transposed(orientation),
            lambda: tf.transpose(image, (1, 0, 2)),
            lambda: image,
        )
        axes = tf.where(_flips(orientation))[:, 0]
        return tf.reverse(turned, axes)

    return tf.cond(orientation == UPRIGHT, lambda: image, turn)


def upright_shape(shape, orientation) -> tf.Tensor:
    """Returns the height and width that `turn_upright` gives.

    Args:
        shape: int32 tensor `(2,)`, height and width as stored.
        orientation: int32 scalar of `exif_orientation`.
    """
    # Of a slice with a negative stride TensorFlow cannot infer the shape.
    exchanged = tf.reverse(shape, [0])
    return tf.where(_is_transposed(orientation), exchanged, shape)


def stored_box(box, shape, orientation) -> tf.Tensor:
    """Returns the stored part that `turn_upright` turns into a box.

    Args:
        box: int32 tensor (top, left, height, width), upright.
        shape: int32 tensor `(2,)`, height and width of the upright image.
        orientation: int32 scalar of `exif_orientation`.
    """
    corner, size = box[:2], box[2:]
    corner = tf.where(_flips(orientation), shape - corner - size, corner)
    pairs = tf.stack([corner, size])
    pairs = tf.where(_is_transposed(orientation), pairs[:, ::-1], pairs)
    return tf.reshape(pairs, [4])


def _is_transposed(orientation):
    return orientation >= 5


def _flips(orientation):
    return tf.constant(_FLIPS)[orientation - 1] == 1


def _find_exif(contents, start, read):
    """Returns the first EXIF block, or no bytes if there is none.

    `read` returns three int64 scalars for the part at a place: the place of
    the next part, and the place and the size of its EXIF block; the size is 0
    if it has none.
    """
    end = tf.cast(tf.strings.length(contents), tf.int64)
    zero = tf.constant(0, tf.int64)
    _, block, size = tf.while_loop(
        # The 12 bytes that `read` looks at must exist.
        lambda at, block, size: (size == 0) & (at + 12 <= end),
        lambda at, block, size: read(contents, at, end),
        (tf.constant(start, tf.int64), zero, zero),
        maximum_iterations=_MAX_PARTS,
    )
    exif = tf.strings.substr(
        contents, tf.minimum(block, end), tf.minimum(size, _MAX_EXIF)
    )
    # WebP writers disagree on whether the block has this name in front.
    has_name = tf.strings.substr(exif, 0, 6) == b"Exif\0\0"
    return tf.strings.substr(exif, tf.where(has_name, 6, 0), _MAX_EXIF)


def _jpeg_segment(contents, at, end):
    mark = _number(contents, at, 2)
    size = _number(contents, at + 2, 2)
    name = tf.strings.substr(contents, at + 4, 6)
    is_exif = (mark == 0xFFE1) & (name == b"Exif\0\0")
    # Pixels follow the start of scan, and anything may precede a mark.
    is_segment = (mark > 0xFF00) & (mark != 0xFFDA) & (mark < 0xFFFF)
    following = tf.where(is_segment, at + 2 + size, end)
    following = tf.where(mark == 0xFFFF, at + 1, following)
    return following, at + 4, tf.where(is_exif, size - 2, 0)


def _png_chunk(contents, at, end):
    size = _number(contents, at, 4)
    is_exif = tf.strings.substr(contents, at + 4, 4) == b"eXIf"
    return at + 12 + size, at + 8, tf.where(is_exif, size, 0)


def _webp_chunk(contents, at, end):
    size = _number(contents, at + 4, 4, little_endian=True)
    is_exif = tf.strings.substr(contents, at, 4) == b"EXIF"
    return at + 8 + size + size % 2, at + 8, tf.where(is_exif, size, 0)


def _tiff_orientation(exif):
    """Reads the tag from the first directory of a TIFF header."""
    octets = tf.io.decode_raw(exif, tf.uint8)
    little = tf.strings.substr(exif, 0, 4) == b"II*\0"
    is_tiff = little | (tf.strings.substr(exif, 0, 4) == b"MM\0*")
    place = _from_octets(octets[4:8], little)
    # Slices end where the block does, so a place or a count beyond it is safe.
    place = tf.minimum(place, tf.size(octets, tf.int64))
    count = _from_octets(octets[place : place + 2], little)
    tags = octets[place + 2 : place + 2 + 12 * count]
    tags = tf.reshape(tags[: tf.size(tags) // 12 * 12], [-1, 12])
    number, kind, size, value = (
        _from_octets(tags[:, first:last], little)
        for first, last in ((0, 2), (2, 4), (4, 8), (8, 10))
    )
    is_wanted = (number == _ORIENTATION) & (kind == _SHORT) & (size == 1)
    is_wanted &= is_tiff & (value >= 1) & (value <= 8)
    found = tf.boolean_mask(value, is_wanted)
    orientation = tf.concat([found, [UPRIGHT]], 0)[0]
    return tf.cast(orientation, tf.int32)


def _number(contents, at, count, little_endian=False):
    part = tf.strings.substr(contents, at, count)
    octets = tf.io.decode_raw(part, tf.uint8)
    return _from_octets(octets, tf.constant(little_endian))


def _from_octets(octets, little_endian):
    """Turns the last axis of bytes into int64 numbers."""
    octets = tf.cast(octets, tf.int64)
    octets = tf.where(little_endian, octets, octets[..., ::-1])
    scales = 256 ** tf.range(tf.shape(octets, tf.int64)[-1])
    return tf.reduce_sum(octets * scales, axis=-1)
