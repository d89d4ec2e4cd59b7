"""Writes files in one step, reads and locks them."""

import contextlib
import csv
import errno
import io
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from keras_dml.errors import UsageError

try:
    import fcntl
except ImportError:  # Windows, where nothing is locked.
    fcntl = None  # type: ignore[assignment]

# What a network's file system without locks answers.
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)
# No space, no quota, or a limit on the size of a file.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path and renames it to `path` at the end.

    A kill or a full disk in the middle leaves an earlier file untouched. Of
    several writers at once the last one wins, with a whole file.

    Args:
        path: The file to write or replace.

    Example:

    >>> with replacing(Path("metrics.json")) as temporary:
    ...     temporary.write_text("{}")
    2
    >>> Path("metrics.json").read_text()
    '{}'
    """
    stem, suffix = _parts(path)
    token = secrets.token_hex(4)
    temporary = path.with_name(f".{stem}.{token}.partial{suffix}")
    try:
        yield temporary
        # Windows commits only what may be written.
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _parts(path: Path) -> tuple[str, str]:
    """Splits all suffixes off: Keras writes weights to `.weights.h5` only."""
    suffix = "".join(path.suffixes)
    return path.name.removesuffix(suffix), suffix


def is_partial(name: str, path: Path) -> bool:
    """Returns whether a name is of a temporary file that becomes `path`."""
    stem, suffix = map(re.escape, _parts(path))
    return re.fullmatch(rf"\.{stem}\.\w+\.partial{suffix}", name) is not None


def remove_partial(folder: Path) -> None:
    """Removes the temporary files of a folder that killed writers left.

    Those of the last ten minutes may have a writer still.
    """
    before = time.time() - 600
    for path in folder.glob(".*.partial*"):
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_mtime < before:
                path.unlink()


def write_text(path: Path, text: str) -> None:
    """Writes or replaces a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def readable(name: str | os.PathLike[str]) -> str:
    """Returns a file name as valid text; a name need not be UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def check_text(name: str | os.PathLike[str]) -> None:
    """Raises for a name that no page, log or configuration could hold.

    Raises:
        UsageError: If it is not UTF-8.
    """
    try:
        os.fspath(name).encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "The name of a data set or of a folder to write must be UTF-8. "
            f"Received: {readable(name)}. Rename it."
        ) from error


def read_some(path: Path, most: int) -> str:
    """Reads a text file of at most `most` characters; a device never ends.

    Raises:
        ValueError: If it is no regular file, longer, or not UTF-8.
        OSError: If it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise ValueError("it is no regular file")
    with open(path, encoding="utf-8-sig") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"it has more than {most:,} characters")
    return text


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Returns rows as the text of a CSV file.

    Example:

    >>> csv_text([["run", "value"], ["a", 0.5]])
    'run,value\\na,0.5\\n'
    """
    return "".join(map(_csv_line, rows))


def _csv_line(row: Iterable[Any]) -> str:
    buffer = io.StringIO()
    # Before Python 3.13 only the characters that end lines are quoted.
    csv.writer(buffer, lineterminator="\r\n").writerow(row)
    return buffer.getvalue().removesuffix("\r\n") + "\n"


def write_json(path: Path, content: Any) -> None:
    """Writes or replaces a JSON file in one step, indented for people."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def load_json(path: Path) -> Any:
    """Reads a JSON file.

    Raises:
        UsageError: If it is missing, or holds something else.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror
    except RecursionError:
        reason = "lists nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise UsageError(
        f"{path} must hold JSON in UTF-8. Received: {reason}. Restore the file."
    )


def read_json(path: Path) -> Any:
    """Reads a JSON file; returns `None` if it is missing or damaged."""
    try:
        return load_json(path)
    except UsageError:
        return None


def check_fields(content: Any, fields: Any, path: Path, what: str) -> Any:
    """Returns the content of a file, if its fields are those of a model.

    Args:
        content: The plain values of the file.
        fields: Class of pydantic that declares them.
        path: The file, for the error.
        what: What the file holds, with its article.

    Raises:
        UsageError: If a field is missing or of another type; names the first.
    """
    try:
        fields.model_validate(content)
    except ValueError as error:
        first = error.errors(include_url=False)[0]  # type: ignore[attr-defined]
        place = ".".join(map(str, first["loc"]))[:80]
        reason = first["msg"].removeprefix("Value error, ")
        reason = reason.partition(" or instance of")[0]
        raise UsageError(
            f"{path} must hold {what}. Received: "
            f"{f'`{place}`: ' if place else ''}{reason}. Restore the file, or "
            "make it again."
        ) from error
    return content


def is_full_disk(error: BaseException | None) -> bool:
    """Returns whether an error comes from a full disk, or a quota.

    TensorFlow and HDF5 raise errors of their own, whose message says so.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if any(os.strerror(one) in str(error) for one in _FULL):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_read_only(error: OSError) -> bool:
    """Returns whether an error comes from a place that must not be written."""
    return error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)


def lock(path: Path) -> IO[str] | None:
    """Locks a file until it is closed or the process ends.

    Args:
        path: The file, which is created if missing.

    Returns:
        The open file, or `None` if another process has locked it. It is not
        locked on a file system that has no locks.
    """
    # Neither empties what a link leads to, nor waits for the reader of a pipe.
    file = open(path, "a", encoding="utf-8", opener=_open_at_once)  # noqa: SIM115
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                file.close()
                raise
    return file


def is_locked(path: Path) -> bool:
    """Returns whether a process has locked a file; `False` if missing."""
    if not path.is_file():
        return False
    file = lock(path)
    if file is not None:
        file.close()
    return file is None


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
