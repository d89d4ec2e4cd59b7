"""Embeds any number of images with a trained run, and writes files."""

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.checks import positive_integer, require
from keras_dml.config import RunConfig
from keras_dml.console import logger, progress_bar, track
from keras_dml.data import decoding, verification
from keras_dml.data.image_list import ImageList, list_images
from keras_dml.embed.output import Output
from keras_dml.embed.stream import (
    Batch,
    by_part,
    embed_batches,
    image_batches,
    watch,
)
from keras_dml.embeddings import EmbeddingSet
from keras_dml.embeddings.embedding_set import split_names
from keras_dml.embeddings.shard_folder import ShardFolder, check_same
from keras_dml.errors import RunError
from keras_dml.files import readable
from keras_dml.models import forward_function
from keras_dml.run.prefixes import with_dim
from keras_dml.run.trained_run import TrainedRun
from keras_dml.version import __version__

SHARD_SIZE = 10_000
LARGEST_BATCH = 65_536


@dataclasses.dataclass(frozen=True)
class Embedded:
    """The place and the number of the embeddings that were written.

    Args:
        output: The folder of shards, or the file.
        images: Number of images of the source.
        rows: Number of embedded images.
        bad: Number of images that could not be read.
        bad_list: The file that lists the bad images; `None` without any.
        dim: The dimension of an embedding.
        seconds: Time that this call embedded; 0 if nothing was left to do.
        images_per_second: Speed of this call; 0 if nothing was left to do.
    """

    output: str
    images: int
    rows: int
    bad: int
    bad_list: str | None
    dim: int
    seconds: float
    images_per_second: float


def embed_source(
    run: TrainedRun | str | Path,
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    data_dir: str | Path | None = None,
    file_format: str | None = None,
    shard_size: int = SHARD_SIZE,
    batch_size: int | None = None,
    max_pixels: int = decoding.MAX_PIXELS,
    dim: int | None = None,
    resume: bool = False,
) -> Embedded:
    """Embeds all images of a source, in memory independent of their number.

    Args:
        run: The run folder. In Python also a `TrainedRun`.
        source: A folder of images, with or without one sub-folder per class;
            a CSV file (path[,label]); a data set's name, or `"tfds:NAME"`.
        output: A folder for shards, or one `FILE.npz` or `FILE.parquet`.
        data_dir: Folder that holds the data set's files. Defaults to `None`.
        file_format: `"npz"` or `"parquet"`. Defaults to `None`, the format of
            the file name, or `"npz"` for a folder.
        shard_size: Number of images of a shard. A kill loses at most the
            current shard. Defaults to `10000`.
        batch_size: Number of images to embed at once. Defaults to `None`, the
            run's `evaluation.batch_size`.
        max_pixels: Images with more pixels are bad ones. Defaults to
            89,478,485.
        dim: Number of values of an embedding, one of the sizes in
            `model.matryoshka` of the run. Defaults to `None`, all of them.
        resume: Whether to continue an output that exists. Defaults to
            `False`.

    Returns:
        `Embedded`.

    Raises:
        UsageError: If an argument is wrong, the output exists and `resume` is
            false, or it was made of other images or by other weights.
        RunError: If no image can be read, or an embedding is not finite.

    Example:

    ```python
    embed_source("runs/shoes", "photos", "vectors", resume=True)
    ```
    """
    positive_integer("shard_size", shard_size)
    positive_integer("max_pixels", max_pixels)
    if batch_size is not None:
        positive_integer("batch_size", batch_size)
        require(
            batch_size <= LARGEST_BATCH,
            "batch_size",
            f"at most {LARGEST_BATCH:,}",
            batch_size,
        )
    source = os.fspath(source)
    target = Output(output, file_format)
    target.check_free(resume)
    opened = with_dim(TrainedRun.of(run), dim)
    with progress_bar() as progress:
        progress.add_task("listing images", total=None, note="")
        partial = opened.config.data.allow_partial
        images = list_images(source, data_dir, partial)
    settings = make_settings(
        opened,
        images,
        source=source,
        format=target.format,
        shard_size=shard_size,
        max_pixels=max_pixels,
    )
    stored = target.manifest() if target.merged else None
    if stored is not None:
        check_same(stored, settings, target.path)
        target.delete_shards()
        return _embedded(target, stored)
    with target.shards as shards:
        shards.lock()
        if shards.exists:
            check_same(shards.manifest(), settings, target.path)
        else:
            shards.create(settings)
        start = time.perf_counter()
        done = embed_missing(
            forward_function(opened.embedder),
            images,
            shards,
            opened.config,
            batch_size or opened.config.evaluation.batch_size,
        )
        seconds = time.perf_counter() - start
        finished = target.finish()
    if not finished["rows"]:
        raise RunError(
            f"None of the {len(images)} images of {source} can be read; "
            f"{target.bad_list} says why."
        )
    return _embedded(target, finished, done, seconds)


def _embedded(
    target: Output,
    manifest: dict[str, Any],
    done: int = 0,
    seconds: float = 0.0,
) -> Embedded:
    return Embedded(
        output=str(target.path),
        images=manifest["num_images"],
        rows=manifest["rows"],
        bad=manifest["bad"],
        bad_list=str(target.bad_list) if manifest["bad"] else None,
        dim=manifest["dim"],
        seconds=round(seconds, 3) if done else 0.0,
        images_per_second=round(done / seconds, 1) if done else 0.0,
    )


def make_settings(
    run: TrainedRun, images: ImageList, *, shard_size: int, **choices: Any
) -> dict[str, Any]:
    """Returns the settings behind all rows, and a hash per shard of images.

    Args:
        run: The run.
        images: `ImageList`, all images.
        shard_size: Integer, the number of images of a shard.
        **choices: `source`, `format` and `max_pixels`.
    """
    config = run.config
    parts = shard_ranges(len(images), shard_size)
    return {
        "version": __version__,
        **choices,
        "shard_size": shard_size,
        "num_images": len(images),
        "labels": images.labels is not None,
        "dim": run.embedder.output_shape[-1],
        "weights_hash": run.weights_hash,
        "image_shape": list(config.data.image_shape),
        "resize": config.augmentation.resize,
        "squash": config.augmentation.squash,
        "digests": [
            images.digest(part.start, part.stop)
            for part in track(parts, "checking images", len(parts))
        ],
    }


def shard_ranges(count: int, size: int) -> list[range]:
    """Returns the numbers of each shard's images; the last may have fewer."""
    numbers = range(count)
    return [numbers[start : start + size] for start in numbers[::size]]


def embed_missing(
    forward: Callable[[Any], Any],
    images: ImageList,
    folder: ShardFolder,
    config: RunConfig,
    batch_size: int,
) -> int:
    """Writes the missing shards.

    Args:
        forward: Result of `forward_function`.
        images: `ImageList`, all images of the folder.
        folder: `ShardFolder`, created for these images.
        config: The run's configuration.
        batch_size: Integer, the number of images to embed at once.

    Returns:
        The number of images of these shards, including bad ones.
    """
    settings = folder.manifest()
    max_pixels = settings["max_pixels"]
    missing = folder.missing()
    ranges = shard_ranges(len(images), settings["shard_size"])
    parts = [ranges[number] for number in missing]
    # A kill may have listed bad images of a shard that is missing. They will
    # be found again.
    again = {images.ids[number] for part in parts for number in part}
    known = folder.read_bad()
    if any(bad[0] in again for bad in known):
        folder.write_bad(bad for bad in known if bad[0] not in again)
    del again
    batches = image_batches(
        images, parts, config, batch_size=batch_size, max_pixels=max_pixels
    )
    embedded = watch(embed_batches(forward, batches), parts, len(images))
    for shard, part, (numbers, vectors) in zip(
        missing, parts, by_part(embedded, parts), strict=True
    ):
        reasons = {
            number: verification.reason_refused(images.path(number), max_pixels)
            for number in np.setdiff1d(part, numbers).tolist()
        }
        missed = [one for one, reason in reasons.items() if not reason]
        if missed:
            # A disk that was busy gives now what it kept back.
            late = image_batches(
                images,
                [range(one, one + 1) for one in missed],
                config,
                batch_size=batch_size,
                max_pixels=max_pixels,
            )
            numbers, vectors = _joined(
                (numbers, vectors), *embed_batches(forward, late)
            )
        bad = [
            (
                images.ids[number],
                readable(images.path(number)),
                reason or "it cannot be resized for the network",
            )
            for number, reason in reasons.items()
            if number not in numbers
        ]
        rows = _embedding_set(images, numbers, vectors, settings)
        folder.write(shard, rows, bad)
        name, good = folder.shard(shard).name, len(rows)
        logger.info("%s: %d images, %d bad.", name, good, len(bad))
    return sum(map(len, parts))


def _joined(*batches: Batch) -> Batch:
    """Returns the rows of batches in ascending order, with their values."""
    some = [one for one in batches if len(one[0])] or batches[:1]
    numbers = np.concatenate([rows for rows, _ in some])
    values = np.concatenate([values for _, values in some])
    order = np.argsort(numbers)
    return numbers[order], values[order]


def _embedding_set(
    images: ImageList,
    numbers: np.ndarray,
    vectors: np.ndarray,
    settings: dict[str, Any],
) -> EmbeddingSet:
    finite = np.isfinite(vectors).all(axis=1)
    if not finite.all():
        raise RunError(
            f"The embedding of {images.ids[numbers[np.argmin(finite)]]} is not "
            "finite. The weights of the run are damaged or overflow: train "
            "it again, with model.policy=float32 if it was another."
        )

    def chosen(values: Sequence[str]) -> np.ndarray:
        return np.asarray([values[number] for number in numbers], str)

    labels = None if images.labels is None else chosen(images.labels)
    if labels is not None and images.several:
        labels = split_names(labels)
    return EmbeddingSet(
        vectors.reshape(len(numbers), settings["dim"]),
        labels,
        chosen(images.ids),
        weights_hash=settings["weights_hash"],
    )
