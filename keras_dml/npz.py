"""Writes `.npz` files whole or not at all, and reads them without pickles."""

import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np

from keras_dml.errors import UsageError, reason_of
from keras_dml.files import replacing
from keras_dml.machine import machine_memory


def write_npz(path: str | os.PathLike[str], **arrays: Any) -> None:
    """Writes or replaces an `.npz` file, and makes its folder.

    Args:
        path: The `.npz` file.
        **arrays: The arrays by name.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


def read_npz(
    path: str | os.PathLike[str],
    needed: Iterable[str],
    optional: Iterable[str] = (),
) -> dict[str, np.ndarray]:
    """Reads arrays by name; raises on a pickle and never runs it.

    Args:
        path: The `.npz` file.
        needed: Names of arrays that the file must have.
        optional: Names of arrays to read if the file has them. Defaults to
            `()`.

    Returns:
        Dict of the names to arrays.

    Raises:
        UsageError: If the file or a needed array is missing or unreadable.
    """
    name, needed = os.fspath(path), tuple(needed)
    if not os.path.isfile(path):
        raise UsageError(
            f"There is no file {name!r}. Give an `.npz` file with the arrays "
            f"{_listed(needed)}."
        )
    try:
        with open(path, "rb") as stream:
            file = open_npz(stream)
            found = file.files
            wanted = [key for key in (*needed, *optional) if key in found]
            arrays = {key: file[key] for key in wanted}
        # NumPy returns a member that is no array as bytes.
        if not all(isinstance(one, np.ndarray) for one in arrays.values()):
            raise ValueError("it holds something that is no array")
    # Damaged bytes raise errors of many kinds in NumPy, zipfile and zlib.
    except Exception as error:
        if "Object arrays" in str(error):
            raise UsageError(
                f"{name} holds an array of Python objects, a pickle, which is "
                "never loaded. Save labels and ids as integers or strings, "
                "such as np.asarray(labels, str)."
            ) from error
        raise UsageError(
            f"{name} is not a readable `.npz` file ({reason_of(error)}). "
            "Save it again with numpy.savez."
        ) from error
    missing = [key for key in needed if key not in arrays]
    if missing:
        raise UsageError(
            f"{name} must hold the arrays {_listed(needed)}. Received: "
            f"{_listed(found) or 'no array'}. Save it with {_listed(missing)} "
            "as well."
        )
    return arrays


def open_npz(stream: IO[bytes]) -> np.lib.npyio.NpzFile:
    """Opens an archive of arrays, whose pickles are never loaded.

    Args:
        stream: The open file. If NumPy opened a file that is no archive, it
            would never close it.

    Raises:
        ValueError: If it is no archive, or its arrays take more than the
            memory of this machine; NumPy and `zipfile` raise further errors.
    """
    file = np.load(stream, allow_pickle=False)
    if not isinstance(file, np.lib.npyio.NpzFile):
        raise ValueError("it holds a single array")
    archive: Any = file.zip
    for member in archive.infolist():
        # Compares the name in the directory with that of the array itself.
        archive.open(member).close()
    check_fits(sum(member.file_size for member in archive.infolist()))
    return file


def check_fits(size: int) -> None:
    """Raises if arrays take more than the memory of this machine.

    Compression shrinks zeros a thousandfold, so a small file may hold more.

    Args:
        size: Integer, the bytes of the arrays.

    Raises:
        ValueError: If they take more.
    """
    memory = machine_memory()
    if size > memory:
        raise ValueError(
            f"its arrays take {size:,} bytes, and this machine has {memory:,}"
        )


def count_npz_rows(path: str | os.PathLike[str], name: str) -> int | None:
    """Counts the rows of an array without reading it.

    Args:
        path: The `.npz` file.
        name: The name of the array.

    Returns:
        The number of rows; `None` if the file is missing or damaged.
    """
    try:
        # `ZipFile` reads the end of the archive, so it finds truncated files.
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(f"{name}.npy") as member,
        ):
            np.lib.format.read_magic(member)
            shape, _, _ = np.lib.format.read_array_header_1_0(member)
            return int(shape[0])
    except Exception:
        return None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
