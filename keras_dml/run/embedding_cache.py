"""Embeddings of a run's images, kept in the run folder."""

from pathlib import Path

import numpy as np

from keras_dml.console import logger
from keras_dml.embeddings import (
    EmbeddingSet,
    load_embeddings,
    save_embeddings,
)
from keras_dml.embeddings.npz_file import read_arrays
from keras_dml.errors import UsageError

_IMAGES_HASH = "images_hash"


class EmbeddingCache:
    """One file of embeddings that knows its weights and its images.

    What other weights made, or what was made of other images, is never
    returned: the caller makes it anew.

    Args:
        path: The `.npz` file, which may not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(
        self, weights_hash: str, images_hash: str | None = None
    ) -> EmbeddingSet | None:
        """Returns the embeddings if they are still right, else `None`.

        Args:
            weights_hash: The hash of the present weights.
            images_hash: The hash of the present images. Defaults to `None`,
                which takes what is there.
        """
        if not self.path.is_file():
            return None
        try:
            embeddings = load_embeddings(self.path)
            stored = str(read_arrays(self.path, (_IMAGES_HASH,))[_IMAGES_HASH])
        except UsageError as error:
            logger.warning("Embedding again: %s", error)
            return None
        if embeddings.weights_hash != weights_hash:
            logger.info("Embedding again: %s is of other weights.", self.path)
            return None
        if images_hash not in (None, stored):
            logger.info("Embedding again: the images have changed.")
            return None
        return embeddings

    def save(self, embeddings: EmbeddingSet, images_hash: str) -> None:
        """Writes embeddings and the hash of their images."""
        save_embeddings(
            self.path, embeddings, **{_IMAGES_HASH: np.array(images_hash)}
        )
