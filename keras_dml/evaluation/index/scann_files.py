"""Writes and reads the folder of a saved `ScannIndex`.

`index.npz` holds ids and settings and names the folder of ScaNN's files. It is
replaced in one step after those files are written, so if the writing stops
early, it still names the previous files. ScaNN itself would save ids in a
pickle, which runs code when it is read; this module neither writes nor reads a
pickle.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml import npz
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.scann_searcher import ScannSearcher, ScannShape

TABLE = "index.npz"
FOLDER = "scann-"


def write_folder(
    path: Path,
    searcher: ScannSearcher,
    settings: dict[str, Any],
    **arrays: Any,
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
    former = _folders(path)
    path.mkdir(parents=True, exist_ok=True)
    number = max((_number(name) for name in former), default=-1) + 1
    folder = path / f"{FOLDER}{number}"
    folder.mkdir()
    try:
        sizes = searcher.write(folder)
        header = {
            "folder": folder.name,
            "sizes": sizes,
            "shape": searcher.shape.name,
            "num_leaves": searcher.shape.num_leaves,
            "settings": settings,
        }
        npz.write_npz(path / TABLE, header=json.dumps(header), **arrays)
    except BaseException:
        shutil.rmtree(folder)
        raise
    for name in former:
        shutil.rmtree(path / name)


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
    header = json.loads(str(arrays.pop("header")))
    # `name` drops any parent folders that a crafted file could name.
    folder = path / Path(header["folder"]).name
    shape = ScannShape(header["shape"], header["num_leaves"])
    searcher = ScannSearcher.read(folder, header["sizes"], shape)
    return searcher, header["settings"], arrays


def _folders(path: Path) -> list[str]:
    """Lists ScaNN's folders in a saved index; raises on other content."""
    if not path.exists():
        return []
    names = [entry.name for entry in path.iterdir()] if path.is_dir() else None
    if names is None or any(
        name != TABLE and _number(name) < 0 for name in names
    ):
        raise UsageError(
            "`path` must be a new folder or a saved `ScannIndex`. Received: "
            f"{os.fspath(path)!r}, which holds something else. Choose "
            "another path."
        )
    return [name for name in names if name != TABLE]


def _number(name: str) -> int:
    """Returns the number of a folder of ScaNN's files; -1 for other names."""
    number = name.removeprefix(FOLDER)
    return int(number) if name != number and number.isdigit() else -1
