"""Locks between the processes of one search; they end with their holder."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from keras_dml.files import lock

WORKERS = "workers"  # folder of the locks of a search
_PAUSE = 0.02


class Worker:
    """This process among those that search in one folder.

    It holds a locked file for as long as it lives. The system unlocks it at
    any end, a kill too, so that others see at once which trials lost their
    process. No clock is involved, unlike with a heartbeat.

    Args:
        folder: Where the files are kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = uuid.uuid4().hex[:12]
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = lock(self._path(self.name))

    def lives(self, name: str) -> bool:
        """Whether the process of that name still runs."""
        return name == self.name or is_locked(self._path(name))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Within it, no other process of the search does the same."""
        with exclusive(self._folder):
            yield

    def close(self) -> None:
        """Gives up its trials."""
        self._path(self.name).unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.close()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Waits for its turn with the files of a search."""
    folder.mkdir(parents=True, exist_ok=True)
    while (file := lock(folder / "all.lock")) is None:
        time.sleep(_PAUSE)
    with file:
        yield


def is_locked(path: Path) -> bool:
    """Whether a process holds the lock of a file; not if it is not there."""
    if not path.exists():
        return False
    file = lock(path)
    if file is None:
        return True
    file.close()
    return False
