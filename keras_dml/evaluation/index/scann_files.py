"""Writes and reads the folder of a saved `ScannIndex`.

`index.npz` holds ids and settings and names the folder of ScaNN's files. It is
replaced in one step after those files are written, so if the writing stops
early, it still names the previous files. ScaNN itself would save ids in a
pickle, which runs code when it is read; this module neither writes nor reads a
pickle.
"""

import contextlib
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml import npz
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.scann_searcher import ScannSearcher, ScannShape
from keras_dml.files import is_partial, remove_partial

TABLE = "index.npz"
FOLDER = "scann-"
# Bytes that are read at a time.
BLOCK = 2**20


def write_folder(
    path: Path, searcher: ScannSearcher, settings: dict[str, Any], **arrays: Any
) -> None:
    """Writes or replaces a saved index.

    Args:
        path: Folder that is new, empty, or a saved index.
        searcher: `ScannSearcher`.
        settings: Dict of JSON values.
        **arrays: Arrays by name, which `read_folder` returns.

    Raises:
        UsageError: If the path holds anything else.
    """
    with _new_folder(path) as folder:
        sizes = searcher.write(folder)
        header = {
            "folder": folder.name,
            "sizes": sizes,
            "checksums": {name: _checksum(folder / name) for name in sizes},
            "shape": searcher.shape.name,
            "num_leaves": searcher.shape.num_leaves,
            "settings": settings,
        }
        npz.write_npz(path / TABLE, header=json.dumps(header), **arrays)


def read_folder(
    path: Path, names: tuple[str, ...]
) -> tuple[ScannSearcher, dict[str, Any], dict[str, np.ndarray]]:
    """Reads a saved index.

    Returns:
        Tuple of the searcher, the settings and the named arrays.

    Raises:
        UsageError: If the path is not a saved index.
    """
    if not (path / TABLE).is_file():
        raise UsageError(
            "`path` must be a folder that `ScannIndex.save` wrote. "
            f"Received: {os.fspath(path)!r}, which is none. Check the path."
        )
    arrays = npz.read_npz(path / TABLE, ("header", *names))
    try:
        header = json.loads(str(arrays.pop("header")))
        # `name` drops any parent folders that a crafted file could name.
        folder = path / Path(header["folder"]).name
        shape = ScannShape(header["shape"], header["num_leaves"])
        sizes, settings = dict(header["sizes"]), dict(header["settings"])
        # Indexes of version 0.1 have none.
        checksums = dict(header.get("checksums", {}))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{path / TABLE} must hold the header of a saved index. Received: "
            f"{error!r}. Build the index again."
        ) from error
    for name, checksum in checksums.items():
        file = folder / Path(name).name
        if file.is_file() and _checksum(file) != checksum:
            # ScaNN reads what it is given, and ends the process over some.
            raise UsageError(
                f"{os.fspath(folder)!r} must hold ScaNN's files as they were "
                f"saved. Received: {file.name}, which is damaged. Build the "
                "index again."
            )
    return ScannSearcher.read(folder, sizes, shape), settings, arrays


def _checksum(file: Path) -> int:
    """Returns the CRC-32 of a file, as archives have it: it shows damage."""
    found = 0
    with open(file, "rb") as opened:
        while block := opened.read(BLOCK):
            found = zlib.crc32(block, found)
    return found


@contextlib.contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Yields a new folder for ScaNN's files; at the end deletes former ones."""
    # A kill in the middle of writing the table leaves a part of it.
    former = [
        entry
        for entry in path.glob("*")
        if entry.name != TABLE and not is_partial(entry.name, Path(TABLE))
    ]
    names = [re.fullmatch(rf"{FOLDER}(\d+)", entry.name) for entry in former]
    if path.is_file() or None in names:
        raise UsageError(
            "`path` must be a new folder or a saved `ScannIndex`. Received: "
            f"{os.fspath(path)!r}, which holds something else. Choose "
            "another path."
        )
    last = max((int(name[1]) for name in names if name), default=-1)
    folder = path / f"{FOLDER}{last + 1}"
    folder.mkdir(parents=True)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder)
        raise
    remove_partial(path)
    for one in former:
        shutil.rmtree(one)
