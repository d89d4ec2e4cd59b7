"""The images that an exported index finds."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_dml.embeddings import EmbeddingSet, load_embeddings
from keras_dml.embeddings.shard_folder import ShardFolder
from keras_dml.errors import UsageError
from keras_dml.export.formats import FORMATS
from keras_dml.run.trained_run import TrainedRun


def holds_gallery(folder: Path, manifest: Mapping[str, Any]) -> bool:
    """Whether an artifact holds embeddings of images, for a search.

    Args:
        folder: The artifact.
        manifest: Its manifest.
    """
    found = FORMATS.get(manifest["format"])
    notes = found.notes if found else ()
    return "index" in manifest or any(
        (folder / name).exists() for name in notes
    )


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
            `keras-dml embed` wrote, with or without labels. Defaults to
            `None`, the run's test references.
        data_dir: Folder of a source's files. Defaults to `None`.

    Returns:
        `EmbeddingSet` of the references only.

    Raises:
        UsageError: If the gallery cannot be read, or other weights made it.
    """
    if isinstance(gallery, EmbeddingSet):
        found = gallery
    elif gallery is not None and not is_source(gallery):
        found = load_embeddings(gallery, need_labels=False)
    else:
        part = (
            run.part("test")
            if gallery is None
            else run.part("all", os.fspath(gallery), data_dir)
        )
        assert part is not None
        found = part.embeddings
    if found.weights_hash != run.weights_hash:
        raise UsageError(
            "The embeddings of `gallery` must be made by this run's weights, "
            f"with the hash {run.weights_hash}. Received: "
            f"{found.weights_hash or 'no hash'}. Embed the images again "
            "with this run."
        )
    return found.select(found.references)


def is_source(gallery: Any) -> bool:
    """Returns whether a gallery is images, whose files `data_dir` may hold."""
    if gallery is None or isinstance(gallery, EmbeddingSet):
        return False
    embedded = Path(gallery).suffix.lower() in (".npz", ".parquet")
    return not (embedded or ShardFolder(gallery).exists)
