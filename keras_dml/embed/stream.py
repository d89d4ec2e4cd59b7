"""Embeds a stream of images in batches, and cuts the batches into parts."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import tensorflow as tf

from keras_dml.config import RunConfig
from keras_dml.console import progress_bar
from keras_dml.data import decoding
from keras_dml.data.fixed_parallelism import BATCHES_AHEAD, fixed_parallelism
from keras_dml.data.image_file import reason_unopened
from keras_dml.data.image_list import ImageList
from keras_dml.run.batches import evaluation_batches, image_fit

AT_ONCE = 1024


def image_batches(
    images: ImageList,
    parts: Sequence[range],
    config: RunConfig,
    *,
    batch_size: int,
    max_pixels: int = decoding.MAX_PIXELS,
) -> Iterator[tuple[np.ndarray, tf.Tensor]]:
    """Yields images and their numbers, fitted as in the evaluation.

    The numbers ascend. Images that cannot be decoded are left out. Memory
    does not grow with the number of images. A batch holds images of one part
    only, so that its rounding does not depend on the other parts.

    Args:
        images: `ImageList`, the images to embed.
        parts: Ranges of the images' numbers, in ascending order.
        config: The run's configuration.
        batch_size: Integer; the last batch of a part holds the rest.
        max_pixels: As for `decoding.decode`. Defaults to 89,478,485.

    Yields:
        int64 array `(batch,)` and float32 tensor `(batch, height, width,
        channels)`.
    """
    if images.pixels is not None:
        yield from _batches_of_arrays(images.pixels, parts, config, batch_size)
        return
    fit = image_fit(config)
    at_once = max(1, AT_ONCE // batch_size) * batch_size

    def chunks():
        for part in parts:
            for start in range(0, len(part), at_once):
                paths = {
                    number: images.path(number)
                    for number in part[start : start + at_once]
                }
                found = {
                    number: os.fsencode(path)
                    for number, path in paths.items()
                    if not reason_unopened(path)
                }
                if found:
                    yield np.asarray([*found]), [*found.values()]

    @tf.autograph.experimental.do_not_convert
    def load(row, path):
        return row, fit.decode(tf.io.read_file(path), max_pixels)

    dataset = tf.data.Dataset.from_generator(
        chunks,
        output_signature=(
            tf.TensorSpec((None,), tf.int64),
            tf.TensorSpec((None,), tf.string),
        ),
    )

    @tf.autograph.experimental.do_not_convert
    def batches(*chunk):
        paths = tf.data.Dataset.from_tensor_slices(chunk)
        loaded = paths.map(load, num_parallel_calls=tf.data.AUTOTUNE)
        return loaded.ignore_errors(log_warning=False).batch(batch_size)

    dataset = dataset.prefetch(1).flat_map(batches)
    for found, batch in fixed_parallelism(dataset.prefetch(BATCHES_AHEAD)):
        yield found.numpy(), batch


def _batches_of_arrays(pixels, parts, config, batch_size):
    for part in parts:
        batches = evaluation_batches(
            pixels.select(np.arange(part.start, part.stop)), config, batch_size
        )
        start = part.start
        for inputs, _ in batches:
            batch = inputs["image"]
            yield np.arange(start, start + len(batch)), batch
            start += len(batch)


Batch = tuple[np.ndarray, np.ndarray]


def embed_batches(
    forward: Callable[[Any], Any],
    batches: Iterable[tuple[np.ndarray, tf.Tensor]],
) -> Iterator[Batch]:
    """Yields rows with their embeddings.

    An accelerator computes a batch while the previous one is fetched.

    Args:
        forward: Result of `forward_function`.
        batches: Pairs of rows and images.
    """
    computed = ((rows, forward(images)) for rows, images in batches)
    # `pairwise` begins the next batch before this one is fetched.
    end: Iterable[Any] = [None]
    for (rows, vectors), _ in pairwise(chain(computed, end)):
        yield rows, np.asarray(vectors)


def by_part(
    batches: Iterable[Batch], parts: Sequence[range]
) -> Iterator[Batch]:
    """Regroups batches of ascending rows, so that each part gives one batch.

    Args:
        batches: Pairs of rows and their values.
        parts: Ranges of rows, in ascending order.

    Yields:
        Rows and values of each part; a part may have none.
    """
    source = iter(batches)
    held: list[Batch] = []
    for part in parts:
        while not held or held[-1][0][-1] < part.stop - 1:
            batch = next(source, None)
            if batch is None:
                break
            held.append(batch)
        here, later = [], []
        for rows, values in held:
            cut = int(np.searchsorted(rows, part.stop))
            here.append((rows[:cut], values[:cut]))
            if cut < len(rows):
                later.append((rows[cut:], values[cut:]))
        held = later
        yield (
            np.concatenate([rows for rows, _ in here] or [np.zeros(0, int)]),
            np.concatenate(
                [values for _, values in here] or [np.zeros((0, 0))]
            ),
        )


def watch(
    batches: Iterable[Batch], parts: Sequence[range], count: int
) -> Iterator[Batch]:
    """Shows the number of finished images, the speed, and the time left.

    Args:
        batches: Pairs of rows and their values.
        parts: Ranges of the rows to embed, in ascending order.
        count: Integer, the number of all rows, including those embedded
            before.

    Yields:
        The batches, unchanged.
    """
    before = count - sum(map(len, parts))
    begin = time.perf_counter()
    with progress_bar() as progress:
        task = progress.add_task(
            "embedding", total=count, completed=before, note=""
        )
        for numbers, vectors in batches:
            end = int(numbers[-1]) + 1
            done = sum(len(part[: max(0, end - part.start)]) for part in parts)
            rate = done / (time.perf_counter() - begin)
            progress.update(
                task, completed=before + done, note=f"{rate:,.0f} images/s"
            )
            yield numbers, vectors
