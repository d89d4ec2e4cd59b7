"""A folder that belongs to one piece of work."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from keras_dml.errors import UsageError
from keras_dml.files import (
    check_text,
    is_full_disk,
    is_partial,
    lock,
    read_json,
    remove_partial,
)
from keras_dml.naming import differences


class ClaimedFolder:
    """A folder that belongs to one piece of work.

    One file, the record, marks the folder and holds the settings of the work.
    A folder with other files and no record is foreign and never written to. A
    kill or a full disk before the record leaves empty folders and a lock,
    which are taken over.

    Subclasses set these attributes:

    Attributes:
        kind: What the folder is, with its article: `"a run folder"`.
        record_name: Name of the record.
        maker: The value of `made_by` in the JSON record, if folders of
            another kind have a record of the same name. `None`: the name is
            enough.
        lock_name: The file in the folder that is locked.
        passing: Names of entries that may exist before the record.
        argument: The argument that names the folder, for errors.

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
    argument = "output"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        check_text(self.path)
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
        strange = not self.path.is_dir() or self._holds_files()
        # Another process may have written the record meanwhile.
        return strange and not self.exists

    def _holds_files(self) -> bool:
        expected = {self.lock_name, *self.passing}
        written = [Path(one) for one in (self.record_name, *self.passing)]
        for folder, folders, files in os.walk(self.path):
            place = Path(folder)
            links = [one for one in folders if (place / one).is_symlink()]
            for name in (*files, *links):
                path = (place / name).relative_to(self.path)
                if not {path.as_posix(), path.parts[0]} & expected and not any(
                    is_partial(path.as_posix(), one) for one in written
                ):
                    return True
        return False

    def check_free(self) -> None:
        """Raises if the folder holds something else, or cannot be made.

        Raises:
            UsageError: If the folder is foreign, the path is a file, or
                nothing can be written where it would be.
        """
        if self.foreign:
            raise UsageError(
                f"{self.path} exists and is not {self.kind} (it has no "
                f"`{self.record_name}`). Choose another `{self.argument}`."
            )
        above = next(
            one for one in self.path.absolute().parents if one.exists()
        )
        if not self.path.exists() and not (
            above.is_dir() and os.access(above, os.W_OK | os.X_OK)
        ):
            raise UsageError(
                f"{self.path} must be a folder that can be made. Received: "
                f"{above}, which is no folder to write to. Choose another "
                f"`{self.argument}`."
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
                f"settings, or choose another `{self.argument}`."
            )

    def lock(self) -> None:
        """Locks the folder until `close`, or until this process ends.

        Raises:
            UsageError: If another process has locked the folder, or nothing
                can be written to it.
        """
        if self._lock is not None:
            return
        file = self.path / self.lock_name
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._lock = lock(file)
        except OSError as error:
            if is_full_disk(error):
                raise
            raise UsageError(
                f"{self.path} must be a folder to write to. Received: "
                f"{error.strerror} ({error.filename}). Choose another "
                f"`{self.argument}`."
            ) from error
        if self._lock is None:
            raise UsageError(
                f"Another process is writing to {self.path}. Wait for it, or "
                f"choose another `{self.argument}`."
            )
        for folder in {self.path, file.parent}:
            remove_partial(folder)

    def close(self) -> None:
        """Unlocks the folder for other processes."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
