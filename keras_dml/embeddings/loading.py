"""Reads embeddings from a file, or from a folder of shards."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.embeddings.npz_file import load_npz
from keras_dml.embeddings.rows import Rows, read_rows
from keras_dml.embeddings.shard_folder import ShardFolder
from keras_dml.errors import UsageError


def load_embeddings(
    path: str | os.PathLike[str], need_labels: bool = True
) -> EmbeddingSet:
    """Reads the embeddings of a file or of a folder of shards.

    Args:
        path: An `.npz` file, a Parquet file, or a folder that `keras-dml
            embed` wrote. Arrays of an `.npz` file under other keys than
            those known are ignored.
        need_labels: Boolean, whether to refuse embeddings of images without
            classes, whose `labels` are else `None`. Defaults to `True`.

    Returns:
        `EmbeddingSet`.

    Raises:
        UsageError: If it is missing, unfinished or damaged, lacks a key,
            holds a pickle, or its arrays do not fit each other.

    Example:

    ```python
    shoes = load_embeddings("shoes.npz")
    print(shoes.embeddings.shape)
    ```
    """
    path = Path(path)
    try:
        if not path.is_dir() and path.suffix != ".parquet":
            return load_npz(path, need_labels)
        if path.is_dir():
            loaded = _load_folder(path)
        else:
            loaded = _as_set(read_rows(path))
    except UsageError as error:
        if str(path) in str(error):
            raise
        raise UsageError(f"{path}: {error}") from error
    if need_labels and loaded.labels is None:
        raise UsageError(
            f"{path} must hold `labels`. Received: `embeddings` and `ids`. "
            "Embed images in one sub-folder for each class, or a CSV file "
            "with the column label."
        )
    return loaded


def iterate_embeddings(path: str | os.PathLike[str]) -> Iterator[EmbeddingSet]:
    """Yields the shards of a folder, one at a time in memory.

    Args:
        path: A folder that `keras-dml embed` wrote.

    Yields:
        `EmbeddingSet` of each shard that has rows.

    Raises:
        UsageError: If the folder is unfinished, or a shard is damaged or was
            made by other weights.

    Example:

    ```python
    for shard in iterate_embeddings("vectors"):
        database.insert(shard.ids, shard.embeddings)
    ```
    """
    for rows in _finished_rows(Path(path)):
        if len(rows):
            yield _as_set(rows)


def _load_folder(path: Path) -> EmbeddingSet:
    manifest = ShardFolder(path).manifest()
    # Filled in place: joining the shards would hold all of them twice.
    embeddings = np.empty((manifest.get("rows", 0), manifest["dim"]), "float32")
    ids: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    start = 0
    for rows in _finished_rows(path):
        embeddings[start : start + len(rows)] = rows.embeddings
        start += len(rows)
        ids.append(rows.ids)
        if rows.labels is not None:
            labels.append(rows.labels)
    return EmbeddingSet(
        embeddings,
        np.concatenate(labels) if labels else None,
        np.concatenate(ids),
        weights_hash=manifest["weights_hash"],
    )


def _finished_rows(path: Path) -> Iterator[Rows]:
    """Every shard in order, each checked against the manifest."""
    folder = ShardFolder(path)
    manifest = folder.manifest()
    if not manifest["finished"]:
        raise UsageError(
            f"{path} is unfinished: {len(folder.missing())} of "
            f"{len(manifest['digests'])} shards are missing. Finish it with "
            f"`keras-dml embed ... --output {path} --resume`."
        )
    for file, count in zip(
        folder.shards(), manifest["shard_rows"], strict=True
    ):
        rows = read_rows(file)
        if rows.weights_hash != manifest["weights_hash"] or len(rows) != count:
            raise UsageError(
                f"{file} must hold {count} rows made by the weights "
                f"{manifest['weights_hash']}. Received: {len(rows)} rows by "
                f"{rows.weights_hash}. Delete it, and embed with `--resume`."
            )
        yield rows


def _as_set(rows: Rows) -> EmbeddingSet:
    return EmbeddingSet(
        rows.embeddings,
        rows.labels,
        rows.ids,
        weights_hash=rows.weights_hash,
    )
