"""The images that an exported index finds."""

import os
from pathlib import Path
from typing import Any

from keras_dml.embeddings import EmbeddingSet, load_embeddings
from keras_dml.embeddings.shard_folder import ShardFolder
from keras_dml.errors import UsageError
from keras_dml.run.trained_run import TrainedRun


def read_gallery(
    run: TrainedRun,
    gallery: Any = None,
    data_dir: str | Path | None = None,
) -> EmbeddingSet:
    """Reads or computes the embeddings of a gallery by a run's weights.

    Args:
        run: `TrainedRun`.
        gallery: A source, all images of which are embedded; or embeddings: an
            `EmbeddingSet`, an `.npz` or Parquet file, or a folder that
            `keras-dml embed` wrote. Defaults to `None`, the run's test
            references.
        data_dir: Folder of a source's files. Defaults to `None`.

    Returns:
        `EmbeddingSet` of the references only.

    Raises:
        UsageError: If the gallery cannot be read, or other weights made it.
    """
    if gallery is None:
        part = run.part("test")
    elif _holds_embeddings(gallery):
        return _check_weights(gallery, run.weights_hash)
    else:
        part = run.part("all", os.fspath(gallery), data_dir)
    assert part is not None
    return part.embeddings.select(part.embeddings.references)


def _holds_embeddings(gallery: Any) -> bool:
    if isinstance(gallery, EmbeddingSet):
        return True
    suffix = Path(gallery).suffix
    return suffix in (".npz", ".parquet") or ShardFolder(gallery).exists


def _check_weights(gallery: Any, weights_hash: str) -> EmbeddingSet:
    """Returns the references, and raises if other weights made them."""
    if not isinstance(gallery, EmbeddingSet):
        gallery = load_embeddings(gallery)
    if gallery.weights_hash != weights_hash:
        raise UsageError(
            "The embeddings of `gallery` must be made by this run's weights, "
            f"with the hash {weights_hash}. Received: "
            f"{gallery.weights_hash or 'no hash'}. Embed the images again "
            "with this run."
        )
    return gallery.select(gallery.references)
