"""Files that are whole or absent, whatever happens while they are written."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


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
