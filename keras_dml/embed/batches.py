"""Batches of the images that can be decoded, each with its row."""

from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from keras_dml.config import RunConfig
from keras_dml.data import decoding
from keras_dml.embed.image_list import ImageList
from keras_dml.run.data import evaluation_batches, image_fit

ROWS_AT_ONCE = 1024


def image_batches(
    images: ImageList,
    rows: Sequence[range],
    config: RunConfig,
    *,
    batch_size: int,
    max_pixels: int = decoding.MAX_PIXELS,
) -> Iterator[tuple[np.ndarray, tf.Tensor]]:
    """Rows and their images, resized and cropped as in the evaluation.

    The rows ascend. Those of images that cannot be decoded are left out.
    Memory does not grow with the number of images.

    Args:
        images: `ImageList`.
        rows: Ranges of rows, in ascending order.
        config: The run's configuration.
        batch_size: Integer; the last batch holds the rest.
        max_pixels: As for `decoding.decode`. Defaults to 89,478,485.

    Yields:
        int64 array `(batch,)` and float32 tensor `(batch, height, width,
        channels)`.
    """
    if images.pixels is not None:
        yield from _batches_of_arrays(images.pixels, rows, config, batch_size)
        return
    fit = image_fit(config)

    def chunks():
        for part in rows:
            for start in range(part.start, part.stop, ROWS_AT_ONCE):
                stop = min(start + ROWS_AT_ONCE, part.stop)
                chunk = range(start, stop)
                # Bytes, for a name need not be valid UTF-8.
                paths = [
                    images.path(row).encode("utf-8", "surrogateescape")
                    for row in chunk
                ]
                yield np.arange(start, stop), paths

    def load(row, path):
        return row, fit.decode(tf.io.read_file(path), max_pixels)

    dataset = tf.data.Dataset.from_generator(
        chunks,
        output_signature=(
            tf.TensorSpec((None,), tf.int64),
            tf.TensorSpec((None,), tf.string),
        ),
    )
    dataset = dataset.unbatch().map(load, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.ignore_errors(log_warning=False).batch(batch_size)
    # Two, for tf.data's own choice may be half of the memory.
    for found, batch in dataset.prefetch(2):
        yield found.numpy(), batch


def _batches_of_arrays(pixels, rows, config, batch_size):
    for part in rows:
        batches = evaluation_batches(
            pixels.select(np.arange(part.start, part.stop)), config, batch_size
        )
        start = part.start
        for inputs, _ in batches:
            batch = tf.cast(inputs["image"], tf.float32)
            yield np.arange(start, start + len(batch)), batch
            start += len(batch)
