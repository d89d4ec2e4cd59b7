"""Files that are whole or absent, and locks that end with their holder."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where nothing is locked.
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside `path` and renames it at the end.

    A kill or a full disk in the middle leaves an earlier file untouched.

    Args:
        path: The file to write or replace.

    Example:

    >>> with replacing(folder / "metrics.json") as temporary:
    ...     temporary.write_text("{}")
    """
    temporary = path.with_name(f".{path.stem}.partial{path.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes or replaces a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def lock(path: Path) -> IO[str] | None:
    """Locks a file for as long as the process lives, or the file is open.

    Args:
        path: The file; it is made, and its content is lost.

    Returns:
        The open file, or `None` if another process has locked it.
    """
    file = open(path, "w", encoding="utf-8")  # noqa: SIM115
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
    return file
