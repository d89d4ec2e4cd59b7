"""The files of a tuning, and the locks between the processes that share it."""

import contextlib
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from keras_dml.claimed_folder import ClaimedFolder
from keras_dml.config import RunConfig, validate
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.config.validation import validated
from keras_dml.config.yaml_files import dump_yaml, read_yaml
from keras_dml.errors import UsageError, reason_of
from keras_dml.files import is_locked, lock, write_text
from keras_dml.run.folder import PATHS

_WORKERS = "workers"  # the folder of the locks
_ALL = "all.lock"  # of which a process waits for the others
_PAUSE = 0.02


class TuningFolder(ClaimedFolder):
    """The folder of one tuning.

    Args:
        path: The folder. Nothing is created until `claim`.
        folds: Integer, the number of trainings of a trial. Defaults to `1`.
    """

    kind = "the folder of a tuning"
    record_name = "tuning.yaml"
    passing = frozenset({_WORKERS})

    def __init__(self, path: str | Path, folds: int = 1) -> None:
        super().__init__(path)
        self.folds = folds
        self.workers = self.path / _WORKERS
        self.trials = self.path / "trials.csv"
        self.best = self.path / "best.yaml"
        self.figures = self.path / "figures"

    def runs(self, name: str) -> list[Path]:
        """Returns the run folders of a trial: one for each fold."""
        folder = self.path / "runs"
        if self.folds == 1:
            return [folder / name]
        return [folder / f"{name}-fold{fold}" for fold in range(self.folds)]

    def log(self, run: Path) -> Path:
        """Returns the log of a run."""
        return self.path / "logs" / f"{run.name}.log"

    def claim(self, section: TuningConfig, reference: RunConfig) -> None:
        """Makes the folder, or checks that it belongs to the same tuning.

        Args:
            section: The `tuning` section. It may ask for more or fewer
                `trials` than before, except of a grid.
            reference: A configuration. The trials differ from it only in the
                tuned settings.

        Raises:
            UsageError: If the folder holds another tuning or something else.
        """
        settings = _settings(section, reference, self.folds)
        self.check_free()
        with exclusive(self.workers):
            if not self.exists:
                write_text(self.record, dump_yaml(settings))
        self.check_same(self._stored(), settings)

    def _stored(self) -> dict[str, Any]:
        """Reads the record, also that of a version with other settings."""
        stored = read_yaml(self.record)
        try:
            return _settings(
                validated(TuningConfig, stored["tuning"]),
                validate(stored["run"]),
                stored.get("folds", 1),
            )
        except (KeyError, TypeError, UsageError) as error:
            raise UsageError(
                f"{self.record} must hold the settings of a tuning. Received: "
                f"other content ({reason_of(error)}). Restore it, or choose "
                "another `output`."
            ) from error


def _settings(
    section: TuningConfig, reference: RunConfig, folds: int
) -> dict[str, Any]:
    """Returns what must stay the same while a tuning goes on."""
    run = reference.model_dump(mode="json")
    for key, whole in PATHS.items():
        part, name = key.split(".")
        if run[part] is not None:
            run[part][name] = whole(run[part][name])
    settings: dict[str, Any] = {
        "tuning": section.model_dump(mode="json"),
        "run": run,
    }
    if section.kind != "grid":
        del settings["tuning"]["trials"]
    if folds > 1:
        settings["folds"] = folds
    return settings


class Worker:
    """Represents this process among those that work on one tuning.

    It keeps a file locked while the process runs. The system unlocks the file
    when the process ends, even by a kill, so other processes see at once which
    trials have lost their process. Unlike a heartbeat, this needs no clock.

    Args:
        folder: The folder of the locks.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.name = uuid.uuid4().hex[:12]
        # Alone, as the file of a process that begins is not locked yet.
        with self.alone():
            for path in folder.glob("*.lock"):
                if path.name != _ALL and not is_locked(path):
                    # One that ends removes its own.
                    path.unlink(missing_ok=True)
            self._lock = lock(self._path(self.name))

    def lives(self, name: str) -> bool:
        """Returns whether the process of that name still runs."""
        return name == self.name or is_locked(self._path(name))

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Makes the other processes of the tuning wait."""
        return exclusive(self._folder)

    def close(self) -> None:
        """Unlocks the file, so that other processes take over the trials."""
        self._path(self.name).unlink(missing_ok=True)
        if self._lock is not None:
            self._lock.close()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"


@contextlib.contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Waits for exclusive access to the files of a tuning."""
    folder.mkdir(parents=True, exist_ok=True)
    while (file := lock(folder / _ALL)) is None:
        time.sleep(_PAUSE)
    with file:
        yield
