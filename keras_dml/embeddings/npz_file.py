"""Reads and writes embeddings as `.npz` files, without pickles.

Keys: `embeddings`, and where known `labels`, `ids`, `role`, `class_names` and
`hash`, the hash of the weights that made the embeddings.
"""

import os
import zipfile
import zlib
from typing import Any

import numpy as np

from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.errors import UsageError
from keras_dml.evaluation import storage

NEEDED = ("embeddings", "labels")
OPTIONAL = ("ids", "role", "class_names", "hash")
_UNREADABLE = (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error)


def load_npz(
    path: str | os.PathLike[str], need_labels: bool = True
) -> EmbeddingSet:
    """Reads the embeddings of a file; arrays under other keys are ignored.

    Args:
        path: The `.npz` file.
        need_labels: Boolean, whether to refuse a file without labels.
            Defaults to `True`.

    Returns:
        `EmbeddingSet`.

    Raises:
        UsageError: If the file is missing or no `.npz` file, lacks a key,
            holds a pickle, or its arrays do not fit each other.
    """
    needed = NEEDED if need_labels else NEEDED[:1]
    arrays = read_arrays(path, needed, (*NEEDED[len(needed) :], *OPTIONAL))
    stored_hash = arrays.pop("hash", None)
    try:
        return EmbeddingSet(
            **arrays,
            weights_hash=None if stored_hash is None else str(stored_hash),
        )
    except UsageError as error:
        raise UsageError(f"{os.fspath(path)}: {error}") from error


def save_embeddings(
    path: str | os.PathLike[str], embeddings: EmbeddingSet, **more: Any
) -> None:
    """Writes embeddings to a file, whole or not at all.

    Args:
        path: The `.npz` file to write or replace.
        embeddings: `EmbeddingSet`.
        **more: Further arrays, which `load_embeddings` ignores.
    """
    arrays = {name: getattr(embeddings, name) for name in ("embeddings", "ids")}
    if embeddings.labels is not None:
        arrays["labels"] = embeddings.labels
    if embeddings.has_gallery:
        arrays["role"] = embeddings.role
    if embeddings.class_names is not None:
        arrays["class_names"] = embeddings.class_names
    if embeddings.weights_hash is not None:
        arrays["hash"] = np.array(embeddings.weights_hash)
    storage.write_npz(path, **arrays, **more)


def read_arrays(
    path: str | os.PathLike[str],
    needed: tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> dict[str, np.ndarray]:
    """Reads arrays from an `.npz` file; a pickle inside is refused.

    Raises:
        UsageError: If the file or a needed array is missing or unreadable.
    """
    name = os.fspath(path)
    if not os.path.isfile(path):
        raise UsageError(
            f"There is no file {name!r}. Give an `.npz` file with the arrays "
            f"{_listed(needed)}."
        )
    try:
        # Opened here, for NumPy leaves a file that is no archive open.
        with open(path, "rb") as stream:
            file = np.load(stream, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            missing = [key for key in needed if key not in file.files]
            if missing:
                raise UsageError(
                    f"{name} must hold the arrays {_listed(needed)}. "
                    f"Received: {_listed(file.files) or 'no array'}. Save it "
                    f"with {_listed(missing)} as well."
                )
            wanted = [*needed, *(key for key in optional if key in file.files)]
            arrays = {key: file[key] for key in wanted}
        # A member that is no array comes as bytes.
        if not all(isinstance(one, np.ndarray) for one in arrays.values()):
            raise ValueError("it holds something that is no array")
        return arrays
    except UsageError:
        raise
    except _UNREADABLE as error:
        if "Object arrays" in str(error):
            raise UsageError(
                f"{name} holds an array of Python objects, a pickle, which is "
                "never loaded. Save labels and ids as integers or strings, "
                "such as np.asarray(labels, str)."
            ) from error
        raise UsageError(
            f"{name} is not a readable `.npz` file ({_first_line(error)}). "
            "Save it again with numpy.savez."
        ) from error


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _first_line(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return text.splitlines()[0].rstrip(".")
