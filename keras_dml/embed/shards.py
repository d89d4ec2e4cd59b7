"""Makes the shards of embeddings that are not there yet."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.data import decoding
from keras_dml.embed.batches import image_batches
from keras_dml.embed.image_list import ImageList, readable
from keras_dml.embed.stream import by_part, embed_batches, watch
from keras_dml.embeddings.rows import Rows
from keras_dml.embeddings.shard_folder import Bad, ShardFolder
from keras_dml.errors import RunError


def split_rows(count: int, size: int) -> list[range]:
    """The rows of each shard; the last one may have fewer."""
    return [
        range(start, min(start + size, count))
        for start in range(0, count, size)
    ]


def embed_missing(
    forward: Callable[[tf.Tensor], tf.Tensor],
    images: ImageList,
    folder: ShardFolder,
    config: RunConfig,
    batch_size: int,
) -> int:
    """Writes the shards that are not there.

    Args:
        forward: From `make_forward`.
        images: `ImageList`, all images of the folder.
        folder: `ShardFolder`, created for these images.
        config: The run's configuration.
        batch_size: Integer, images embedded at once.

    Returns:
        How many images those shards stand for.
    """
    settings = folder.manifest()
    numbers = folder.missing()
    all_parts = split_rows(len(images), settings["shard_size"])
    parts = [all_parts[number] for number in numbers]
    total = sum(map(len, parts))
    # What a kill left of a shard is found again.
    again = {images.ids[row] for part in parts for row in part}
    known = folder.read_bad()
    if any(one[0] in again for one in known):
        folder.write_bad(one for one in known if one[0] not in again)
    del again
    batches = image_batches(
        images,
        parts,
        config,
        batch_size=batch_size,
        max_pixels=settings["max_pixels"],
    )
    embedded = embed_batches(forward, batches)
    watched = watch(embedded, parts, len(images))
    max_pixels = settings["max_pixels"]
    for number, part, batch in zip(
        numbers, parts, by_part(watched, parts), strict=True
    ):
        rows, values = batch
        bad = _bad_rows(images, part, rows, max_pixels)
        write = _rows(images, rows, values, settings)
        folder.write(number, write, bad)
        logger.info(
            "%s: %d images, %d bad.",
            folder.shard(number).name,
            len(rows),
            len(bad),
        )
    return total


def _rows(
    images: ImageList,
    rows: np.ndarray,
    values: np.ndarray,
    settings: dict[str, Any],
) -> Rows:
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        raise RunError(
            f"The embedding of {images.ids[rows[np.argmin(finite)]]} is not "
            "finite. The weights of the run are damaged or overflow: train "
            "it again, with model.policy=float32 if it was another."
        )
    labels = images.labels
    return Rows(
        values.reshape(len(rows), settings["dim"]),
        np.asarray([images.ids[row] for row in rows], str),
        None
        if labels is None
        else np.asarray([labels[row] for row in rows], str),
        settings["weights_hash"],
    )


def _bad_rows(
    images: ImageList, part: range, good: np.ndarray, max_pixels: int
) -> list[Bad]:
    bad = np.setdiff1d(np.arange(part.start, part.stop), good)
    return [
        (
            images.ids[row],
            readable(images.path(row)),
            decoding.reason_refused(images.path(row), max_pixels),
        )
        for row in bad
    ]
