"""Writes files in one step, and claims folders for one piece of work."""

import contextlib
import csv
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self

from keras_dml.errors import UsageError
from keras_dml.naming import differences

try:
    import fcntl
except ImportError:  # Windows, where nothing is locked.
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yields a temporary path and renames it to `path` at the end.

    A kill or a full disk in the middle leaves an earlier file untouched.

    Args:
        path: The file to write or replace.

    Example:

    >>> with replacing(folder / "metrics.json") as temporary:
    ...     temporary.write_text("{}")
    """
    temporary = path.with_name(partial_name(path))
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def partial_name(path: Path) -> str:
    """Returns the name of the temporary file that becomes `path`."""
    return f".{path.stem}.partial{path.suffix}"


def write_text(path: Path, text: str) -> None:
    """Writes or replaces a text file in one step."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Returns rows as the text of a CSV file.

    Example:

    >>> csv_text([["run", "value"], ["a", 0.5]])
    'run,value\\na,0.5\\n'
    """
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def write_json(path: Path, content: Any) -> None:
    """Writes or replaces a JSON file in one step, indented for people."""
    write_text(path, json.dumps(content, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Reads a JSON file; returns `None` if it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def lock(path: Path) -> IO[str] | None:
    """Locks a file until it is closed or the process ends.

    Args:
        path: The file. It is created if missing; its content is lost.

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


def is_locked(path: Path) -> bool:
    """Returns whether a process has locked a file; `False` if missing."""
    if not path.exists():
        return False
    file = lock(path)
    if file is not None:
        file.close()
    return file is None


class ClaimedFolder:
    """A folder that belongs to one piece of work.

    One file, the record, marks the folder and holds the settings of the work.
    A folder with other files and no record is foreign and never written to.

    Subclasses set these attributes:

    Attributes:
        kind: What the folder is, with its article: `"a run folder"`.
        record_name: Name of the record.
        maker: The value of `made_by` in the JSON record, if folders of
            another kind have a record of the same name. `None`: the name is
            enough.
        lock_name: The file in the folder that is locked.
        passing: Names of entries that may exist before the record.

    Args:
        path: The folder. Nothing is created until `lock` or until the record
            is written.

    Example:

    ```python
    class RunFolder(ClaimedFolder):
        kind = "a run folder"
        record_name = "config.yaml"

    with RunFolder("runs/digits") as folder:
        folder.check_free()
        folder.lock()
    ```
    """

    kind: str
    record_name: str
    maker: str | None = None
    lock_name = ".lock"
    passing: frozenset[str] = frozenset()

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.record = self.path / self.record_name
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def exists(self) -> bool:
        """Whether the folder has its record."""
        if self.maker is None:
            return self.record.is_file()
        record = read_json(self.record)
        return isinstance(record, dict) and record.get("made_by") == self.maker

    @property
    def foreign(self) -> bool:
        """Whether the path is a file, or a folder with other files."""
        if self.exists or not self.path.exists():
            return False
        expected = {self.lock_name, partial_name(self.record), *self.passing}
        strange = not self.path.is_dir() or any(
            entry.name not in expected for entry in self.path.iterdir()
        )
        # Another process may have written the record meanwhile.
        return strange and not self.exists

    def check_free(self) -> None:
        """Raises if the folder holds something else.

        Raises:
            UsageError: If the folder is foreign, or the path is a file.
        """
        if self.foreign:
            raise UsageError(
                f"{self.path} exists and is not {self.kind} (it has no "
                f"`{self.record_name}`). Choose another `output`."
            )

    def check_same(
        self, stored: Mapping[str, Any], given: Mapping[str, Any]
    ) -> None:
        """Raises if settings differ from those of the work begun here.

        Args:
            stored: The settings in the record; sections may be nested.
            given: The settings of the work that continues.

        Raises:
            UsageError: If they differ, naming the first four differences.
        """
        changed = differences(stored, given)
        if changed:
            more = f"; and {len(changed) - 4} more" if changed[4:] else ""
            raise UsageError(
                f"{self.path} was started with other settings: "
                f"{'; '.join(changed[:4])}{more}. Go on with the same "
                "settings, or choose another `output`."
            )

    def lock(self) -> None:
        """Locks the folder until `close`, or until this process ends.

        Raises:
            UsageError: If another process has locked the folder.
        """
        if self._lock is not None:
            return
        file = self.path / self.lock_name
        file.parent.mkdir(parents=True, exist_ok=True)
        self._lock = lock(file)
        if self._lock is None:
            raise UsageError(
                f"Another process is writing to {self.path}. Wait for it, or "
                "choose another `output`."
            )

    def close(self) -> None:
        """Unlocks the folder for other processes."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
