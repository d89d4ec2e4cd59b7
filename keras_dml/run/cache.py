"""Keeps embeddings in the run folder until weights or images change."""

import hashlib
import os
from pathlib import Path

import keras
import numpy as np
from keras import ops

from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import EmbeddingSet, load_embeddings, save_embeddings
from keras_dml.errors import UsageError
from keras_dml.files import is_read_only
from keras_dml.npz import read_npz

_IMAGES_HASH = "images_hash"


class EmbeddingCache:
    """Stores embeddings with the hashes of their weights and images.

    It never returns embeddings of other weights or of other images; the
    caller embeds again instead.

    Args:
        path: The `.npz` file, which need not exist yet.
        told: Reasons to embed again that were logged already. Caches that
            share this set log each reason once. Defaults to `None`, none.
    """

    def __init__(self, path: Path, told: set[str] | None = None) -> None:
        self.path = path
        self._told = set() if told is None else told

    def load(
        self, weights_hash: str, images_hash: str | None = None
    ) -> EmbeddingSet | None:
        """Returns the embeddings, or `None` if weights or images changed.

        Args:
            weights_hash: The hash of the current weights.
            images_hash: The hash of the current images. Defaults to `None`,
                which skips the comparison of the images.
        """
        if not self.path.is_file():
            return None
        try:
            embeddings = load_embeddings(self.path)
            stored = str(read_npz(self.path, (_IMAGES_HASH,))[_IMAGES_HASH])
        except UsageError as error:
            logger.warning("The images are embedded again. %s", error)
            return None
        if embeddings.weights_hash != weights_hash:
            self._tell("weights")
            return None
        if images_hash not in (None, stored):
            self._tell("images")
            return None
        return embeddings

    def _tell(self, changed: str) -> None:
        if changed not in self._told:
            self._told.add(changed)
            logger.info(
                "The run's %s have changed since its images were embedded: "
                "they are embedded again, and nothing is trained.",
                changed,
            )

    def save(self, embeddings: EmbeddingSet, images_hash: str) -> None:
        """Writes embeddings and the hash of their images.

        Where the folder is read-only it only logs a warning: the run of
        somebody else can be evaluated too.
        """
        try:
            save_embeddings(
                self.path, embeddings, **{_IMAGES_HASH: np.array(images_hash)}
            )
        except OSError as error:
            if not is_read_only(error):
                raise
            logger.warning(
                "%s cannot be written (%s): the images are embedded again "
                "each time.",
                self.path,
                error.strerror,
            )


def weights_hash(model: keras.Model) -> str:
    """Computes the SHA-256 of all weights; saving and loading preserves it.

    Args:
        model: A built `keras.Model`.
    """
    digest = hashlib.sha256()
    for weight in model.weights:
        value = np.ascontiguousarray(ops.convert_to_numpy(weight))
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def images_hash(images: Manifest, config: RunConfig) -> str:
    """Computes the SHA-256 of the images of a run and of its settings.

    It covers ids, labels, roles and splits, the size and modification time
    of the files or the pixels in memory, and the run's settings. It does not
    cover the folder of the files.

    Args:
        images: All images of the source.
        config: The run's configuration.
    """
    digest = hashlib.sha256()
    settings = config.model_dump_json(exclude={"data": {"data_dir", "source"}})
    digest.update(settings.encode())
    digest.update(images.checksum().encode())
    for column in (images.role, images.split):
        digest.update("\0".join(column.tolist()).encode())
    if images.images is not None:
        digest.update(np.ascontiguousarray(images.images).tobytes())
        return digest.hexdigest()
    for path in images.paths.tolist():
        try:
            status = os.stat(path)
        except OSError:
            digest.update(b"missing\n")
            continue
        digest.update(f"{status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
