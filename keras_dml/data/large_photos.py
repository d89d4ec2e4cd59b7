"""Keeps in memory what a training needs of large photos, once decoded.

A phone's photo takes longer to decode than a step takes to learn from it. So a
smaller copy of it trains, and what validates is kept as the network sees it.
Small images are decoded each time, which costs less than to keep them.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from keras_dml.data import decoding, resizing
from keras_dml.data.augmentation import Augmentation
from keras_dml.machine import machine_memory

# What each kind of copies may take of the memory of the machine, on which other
# trainings may run.
SHARE = 1 / 32
# A copy is worth while of an image whose sides are so many times as long.
WORTH = 2
_QUALITY = 95
# What a copy of a photo has, in squares of its shorter side.
_BYTES = 1.5

_tables: dict[str, Any] = {}
_keeping: list[bool] = []


@contextlib.contextmanager
def keeping() -> Iterator[None]:
    """Batches that are made inside keep what they need of large photos."""
    forget()  # Files may have changed since.
    _keeping.append(True)
    try:
        yield
    finally:
        _keeping.pop()
        forget()


def is_keeping() -> bool:
    """Returns whether it is inside of `keeping`."""
    return bool(_keeping)


def forget() -> None:
    """Frees the memory of all copies."""
    for table in _tables.values():
        table.remove(table.export()[0])


def kept() -> int:
    """Counts the copies."""
    return sum(int(table.size()) for table in _tables.values())


def room(side: int) -> int:
    """Returns how many smaller copies may be kept.

    Args:
        side: Integer, their shorter side.
    """
    return _room(math.ceil(_BYTES * side**2))


def smallest_side(size: int, augmentation: Augmentation) -> int:
    """Returns the shorter side of which no random crop needs to be enlarged.

    Args:
        size: Integer, the side of the square that a crop becomes.
        augmentation: Says how small a crop may be.

    Example:

    >>> smallest_side(160, Augmentation(area=(0.3, 1.0), aspect=(0.75, 4 / 3)))
    338
    """
    narrow, wide = augmentation.aspect
    longer = max(wide, 1 / narrow)
    least = max(augmentation.area[0], 1e-4)
    return math.ceil(size * math.sqrt(longer / least))


def read_smaller(path: tf.Tensor, side: int) -> tf.Tensor:
    """Reads an image file, of a large photo a smaller copy.

    What it gives does not depend on what was kept.

    Args:
        path: Scalar string tensor.
        side: Integer, the shorter side of a copy.

    Returns:
        Scalar string tensor, the bytes of an image file.
    """

    def read(keep: Callable) -> tf.Tensor:
        contents = tf.io.read_file(path)
        return tf.cond(
            is_large(contents, WORTH * side),
            lambda: keep(shrunk(contents, side)),
            lambda: contents,
        )

    return _kept(f"{side}", path, room(side), tf.identity, read)


def read_fitted(path: tf.Tensor, fit: Any) -> tf.Tensor:
    """Reads and fits an image file, of a large photo once.

    Args:
        path: Scalar string tensor.
        fit: `ImageFit`.

    Returns:
        What `fit.decode` gives.
    """

    def read(keep: Callable) -> tf.Tensor:
        contents = tf.io.read_file(path)
        image = fit.decode(contents)

        def keeping() -> tf.Tensor:
            with tf.control_dependencies([keep(tf.io.serialize_tensor(image))]):
                return tf.identity(image)

        large = is_large(contents, WORTH * fit.size)
        return tf.cond(large, keeping, lambda: image)

    def parse(value: tf.Tensor) -> tf.Tensor:
        image = tf.io.parse_tensor(value, tf.float32)
        return tf.ensure_shape(image, fit.shape)

    return _kept(repr(fit), path, _room(4 * math.prod(fit.shape)), parse, read)


def _room(size: int) -> int:
    return int(machine_memory() * SHARE) // size


def _kept(
    kind: str, path: tf.Tensor, most: int, parse: Callable, read: Callable
) -> tf.Tensor:
    """Returns what is kept of a file, or else what `read` makes of it.

    Args:
        kind: What is kept.
        path: Scalar string tensor.
        most: How many values may be kept.
        parse: Function of a value that was kept.
        read: Function of a function that keeps a value and returns it.
    """
    if kind not in _tables:
        with tf.init_scope(), tf.device("CPU:0"):
            _tables[kind] = tf.lookup.experimental.MutableHashTable(
                tf.int64, tf.string, ""
            )
    table = _tables[kind]
    # No table has strings for keys of strings.
    key = tf.strings.to_hash_bucket_fast(path, 2**63 - 1)

    def keep(value: tf.Tensor) -> tf.Tensor:
        def insert() -> tf.Tensor:
            with tf.control_dependencies([table.insert(key, value)]):
                return tf.identity(value)

        return tf.cond(table.size() < most, insert, lambda: value)

    found = tf.ensure_shape(table.lookup(key), ())
    there = tf.strings.length(found) > 0
    return tf.cond(there, lambda: parse(found), lambda: read(keep))


def shrunk(contents: tf.Tensor, side: int) -> tf.Tensor:
    """Returns an upright JPEG whose shorter side is `side`.

    Args:
        contents: Scalar string tensor, the bytes of a larger image.
        side: Integer.
    """
    image = decoding.decode_and_crop(
        contents,
        lambda shape: tf.concat([[0, 0], shape], 0),
        least_side=side,
    )
    shape = tf.cast(tf.shape(image)[:2], tf.float32)
    sides = tf.round(shape * (side / tf.reduce_min(shape)))
    image = resizing.resize(image, tf.cast(sides, tf.int32))
    return tf.io.encode_jpeg(
        tf.cast(tf.round(image), tf.uint8),
        quality=_QUALITY,
        chroma_downsampling=False,
    )


def is_large(contents: tf.Tensor, side: int) -> tf.Tensor:
    """Returns whether a JPEG or PNG has a shorter side of at least `side`.

    Other files count as small: TensorFlow cannot read their headers.
    """
    sides = tf.case(
        [
            (
                tf.io.is_jpeg(contents),
                lambda: tf.io.extract_jpeg_shape(contents)[:2],
            ),
            (decoding.is_png(contents), lambda: decoding.png_sides(contents)),
        ],
        default=lambda: tf.zeros(2, tf.int32),
    )
    return tf.reduce_min(sides) >= side
