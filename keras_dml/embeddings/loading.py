"""Reads embeddings from a file, or from a folder of shards."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_dml.checks import a_path
from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.embeddings.files import read_file
from keras_dml.embeddings.shard_folder import ShardFolder
from keras_dml.errors import UsageError


def load_embeddings(
    path: str | os.PathLike[str], need_labels: bool = True
) -> EmbeddingSet:
    """Reads the embeddings of a file or of a folder of shards.

    Args:
        path: An `.npz` file, a Parquet file, or a folder that `keras-dml
            embed` wrote. Unknown keys of an `.npz` file are ignored.
        need_labels: Boolean, whether to raise an error if the file has no
            labels. Defaults to `True`.

    Returns:
        `EmbeddingSet`; its labels are sets where an image may have several.

    Raises:
        UsageError: If `path` is none, or the file or folder is missing,
            unfinished or damaged, lacks a key, holds a pickle or no row, or
            its arrays do not fit each other.

    Example:

    ```python
    shoes = load_embeddings("shoes.npz")
    print(shoes.embeddings.shape)
    ```
    """
    path = a_path("path", path)
    try:
        # Unlike that of `Path`, this takes a name of any length.
        folder = os.path.isdir(path)
        loaded = _load_folder(path) if folder else read_file(path)
    except UsageError as error:
        if str(path) in str(error):
            raise
        raise UsageError(f"{path}: {error}") from error
    if not len(loaded):
        raise UsageError(
            f"{path} must hold at least one embedding. Received: none. Check "
            "that images were found."
        )
    if need_labels and loaded.labels is None:
        raise UsageError(
            f"{path} must hold 'labels'. Received: embeddings without. Save "
            "the class of each image as well; `keras-dml embed` does where "
            "images lie in one sub-folder for each class, or a CSV file has "
            "the column label."
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
    return filter(len, _shards(Path(path)))


def _load_folder(path: Path) -> EmbeddingSet:
    manifest = ShardFolder(path).manifest()
    # Concatenating the shards would hold all embeddings in memory twice.
    shape = manifest.get("rows", 0), manifest["dim"]
    try:
        embeddings = np.empty(shape, "float32")
    except (MemoryError, ValueError) as error:
        raise UsageError(
            f"{path} must fit into memory. Received: embeddings of shape "
            f"{shape}. Read it shard by shard with `iterate_embeddings`."
        ) from error
    ids: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    start = 0
    for shard in _shards(path):
        embeddings[start : start + len(shard)] = shard.embeddings
        start += len(shard)
        ids.append(shard.ids)
        if shard.labels is not None:
            labels.append(shard.labels)
    return EmbeddingSet(
        embeddings,
        np.concatenate(labels) if labels else None,
        np.concatenate(ids),
        weights_hash=manifest["weights_hash"],
    )


def _shards(path: Path) -> Iterator[EmbeddingSet]:
    """Yields every shard in order, after checking it with the manifest."""
    folder = ShardFolder(path)
    manifest = folder.manifest()
    if not manifest["finished"]:
        raise UsageError(
            f"{path} must be finished to be read. Received: "
            f"{len(folder.missing())} of {len(manifest['digests'])} shards "
            "are missing. Finish it: embed again into this folder with "
            "`resume`."
        )
    for file, count in zip(
        folder.shards(), manifest["shard_rows"], strict=True
    ):
        shard = read_file(file)
        found = shard.weights_hash, shard.embeddings.shape
        shape = (count, manifest["dim"])
        if found != (manifest["weights_hash"], shape):
            raise UsageError(
                f"{file} must hold embeddings of shape {shape} made by the "
                f"weights {manifest['weights_hash']}. Received: {found[1]} by "
                f"{found[0]}. Delete it, and embed again with `resume`."
            )
        yield shard
