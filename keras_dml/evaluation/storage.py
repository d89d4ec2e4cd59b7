"""Arrays in `.npz` files, without pickles."""

import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.files import replacing


def write_npz(path: str | os.PathLike[str], **arrays: Any) -> None:
    """Writes arrays to `path` under a temporary name, then renames it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


def read_npz(
    path: str | os.PathLike[str], names: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Reads the named arrays; a pickle inside is refused, never run."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in names}
    except FileNotFoundError:
        raise UsageError(
            f"`path` must be a file. Received: {os.fspath(path)!r}, which "
            "does not exist. Check the path."
        ) from None
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(
            f"`path` must be an `.npz` file with the arrays {names}. "
            f"Received: {os.fspath(path)!r} ({error}). Save it again."
        ) from error


def check_weights_hash(
    path: str | os.PathLike[str], stored: str | None, wanted: str | None
) -> None:
    """Refuses embeddings that other weights made than those in use."""
    if stored is not None and wanted is not None and stored != wanted:
        raise UsageError(
            "`weights_hash` must be that of the weights which made "
            f"{os.fspath(path)!r} ({stored}). Received: {wanted}. Embed the "
            "images again with the present weights."
        )
