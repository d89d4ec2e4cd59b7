"""Hashes that tell whether weights and images are still the same."""

import hashlib
import os

import keras
import numpy as np
from keras import ops

from keras_dml.config import RunConfig
from keras_dml.data.manifest import Manifest


def weights_hash(model: keras.Model) -> str:
    """SHA-256 of all weights of a model, equal after saving and loading.

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
    """SHA-256 of what decides which images a run embeds, and how.

    It covers ids, labels and roles, size and time of change of the files or
    the pixels themselves, and the run's settings; not where the files are.

    Args:
        images: Everything that the source holds.
        config: The run's configuration.
    """
    digest = hashlib.sha256()
    settings = config.model_dump_json(exclude={"data": {"data_dir"}})
    digest.update(settings.encode())
    digest.update(images.checksum().encode())
    digest.update("\0".join(images.role.tolist()).encode())
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
