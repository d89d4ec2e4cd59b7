"""The files of one run, and the rules about writing over them."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from keras_dml.config import RunConfig, dump_run_config, load_run_config
from keras_dml.errors import UsageError
from keras_dml.files import lock, write_text


class RunFolder:
    """Paths and files of one run.

    A run is finished when its `metrics.json` exists: it is written last.

    Args:
        path: The folder; nothing is made until `create`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.metrics = self.path / "metrics.json"
        self.per_query = self.path / "per_query.npz"
        self.history = self.path / "history.csv"
        self.log = self.path / "log.txt"
        self.embedder = self.path / "embedder.keras"
        self.checkpoints = self.path / "checkpoints"
        self.last_checkpoint = self.checkpoints / "last.npz"
        self.best_checkpoint = self.checkpoints / "best.npz"
        self.tensorboard = self.path / "tensorboard"
        self.export = self.path / "export"
        self._lock: IO[str] | None = None

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Opens an existing run.

        Raises:
            UsageError: If the folder does not exist or holds no run.
        """
        folder = cls(path)
        if not folder.path.is_dir():
            raise UsageError(
                f"There is no run folder {folder.path}. Train one with "
                f"`keras-dml fit SOURCE --output {folder.path}`."
            )
        if not folder.config.is_file():
            raise UsageError(
                f"{folder.path} is not a run folder: it has no `config.yaml`."
            )
        return folder

    @property
    def exists(self) -> bool:
        """Whether the folder holds a run, finished or not."""
        return self.config.is_file()

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return self.metrics.is_file()

    def check_free(self, resume: bool) -> None:
        """Refuses a folder that this run must not write to.

        Raises:
            UsageError: If the folder holds a run and `resume` is false, or
                holds something that is not a run.
        """
        if self.exists:
            if not resume:
                state = "a finished" if self.finished else "an unfinished"
                raise UsageError(
                    f"{self.path} already holds {state} run. Pass "
                    "`--resume` to go on with it, or another `--output`."
                )
        elif self.path.exists() and (
            not self.path.is_dir() or any(self.path.iterdir())
        ):
            raise UsageError(
                f"{self.path} exists and is not a run folder (it has no "
                "`config.yaml`). Pass another `--output`."
            )

    def lock(self) -> None:
        """Keeps other processes from writing the same run.

        Raises:
            UsageError: If another process is writing it.
        """
        if self._lock is not None:
            return
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        self._lock = lock(self.checkpoints / ".lock")
        if self._lock is None:
            raise UsageError(
                f"Another process is writing the run {self.path}. Wait for "
                "it, or pass another `--output`."
            )

    def close(self) -> None:
        """Lets other processes go on with the run."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def check_same(self, config: RunConfig) -> None:
        """Refuses to resume with settings other than the run's own.

        Raises:
            UsageError: If `config` differs, naming the first differences.
        """
        stored = _flat(self.load_config().model_dump(mode="json"))
        given = _flat(config.model_dump(mode="json"))
        # Open sizes are settled from the data when the run starts.
        changed = [
            f"`{key}` was {stored.get(key)!r}, received {given.get(key)!r}"
            for key in sorted(stored.keys() | given.keys())
            if stored.get(key) != given.get(key)
            and given.get(key) not in (None, "auto")
        ]
        if changed:
            raise UsageError(
                f"{self.path} was started with another configuration: "
                f"{'; '.join(changed[:4])}. Resume with the same settings, "
                "or choose another `--output`."
            )

    def create(self, config: RunConfig) -> None:
        """Makes the folder and saves the configuration."""
        for folder in (self.path, self.checkpoints):
            folder.mkdir(parents=True, exist_ok=True)
        write_text(self.config, dump_run_config(config))

    def load_config(self) -> RunConfig:
        """The configuration that the run was started with."""
        return load_run_config(self.config)

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Writes `metrics.json`, which marks the run as finished."""
        write_text(self.metrics, json.dumps(metrics, indent=2) + "\n")

    def read_metrics(self) -> dict[str, Any]:
        """Reads `metrics.json`.

        Raises:
            UsageError: If the run has not come to its end.
        """
        if not self.finished:
            raise UsageError(
                f"{self.path} holds an unfinished run. Finish it with "
                f"`keras-dml fit ... --output {self.path} --resume`."
            )
        return json.loads(self.metrics.read_text(encoding="utf-8"))

    def write_history(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes `history.csv`, one row per epoch of every phase."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        write_text(self.history, buffer.getvalue())


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat
