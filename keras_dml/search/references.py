"""The embedded images that an exported index holds."""

import os
from pathlib import Path

from keras_dml.embeddings import EmbeddingSet, load_embeddings
from keras_dml.embeddings.shard_folder import ShardFolder
from keras_dml.errors import UsageError
from keras_dml.run.trained_run import TrainedRun

SUFFIXES = (".npz", ".parquet")


def read_references(
    run: TrainedRun,
    gallery: str | Path | None = None,
    data_dir: str | Path | None = None,
) -> EmbeddingSet:
    """Embeddings of a gallery by a run's weights, and by no others.

    Args:
        run: `TrainedRun`.
        gallery: A source, all images of which are taken; or embeddings: an
            `.npz` or Parquet file, or a folder that `keras-dml embed` wrote.
            Defaults to `None`, the run's test references.
        data_dir: Where a source's files are. Defaults to `None`.

    Returns:
        `EmbeddingSet` of the references alone.

    Raises:
        UsageError: The gallery cannot be read, or other weights made it.
    """
    if gallery is None:
        part = run.part("test")
    elif _holds_embeddings(Path(gallery)):
        return _read_embeddings(gallery, run.weights_hash)
    else:
        part = run.part("all", os.fspath(gallery), data_dir)
    assert part is not None
    return part.embeddings.select(part.embeddings.references)


def _holds_embeddings(path: Path) -> bool:
    return path.suffix in SUFFIXES or ShardFolder(path).exists


def _read_embeddings(path: str | Path, weights_hash: str) -> EmbeddingSet:
    embeddings = load_embeddings(path)
    if embeddings.weights_hash != weights_hash:
        received = embeddings.weights_hash or "no hash"
        raise UsageError(
            f"The embeddings of `--gallery {path}` must be made by this run's "
            f"weights, with the hash {weights_hash}. Received: {received}. "
            "Embed the images again with this run."
        )
    return embeddings.select(embeddings.references)
