"""Names the files of a run, and protects them from being overwritten."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from keras_dml.claimed_folder import ClaimedFolder
from keras_dml.config import RunConfig, dump_run_config, load_run_config
from keras_dml.config.earlier_run import PHASE_EPOCHS, STEPS
from keras_dml.config.merging import flatten
from keras_dml.data import readers
from keras_dml.errors import UsageError
from keras_dml.files import (
    check_fields,
    csv_text,
    load_json,
    write_json,
    write_text,
)
from keras_dml.run.results import Results

# What a run settles, or may do otherwise when it goes on, if it is left open.
OPEN = re.compile(
    r"data\.(natural_size|image_size|train_size|channels)|model\.weights|"
    r"augmentation\.(flip|resize)|evaluation\.every|refit|strategy|devices|"
    + PHASE_EPOCHS.pattern
)
PATHS = {
    "data.source": readers.whole_source,
    "data.data_dir": readers.whole_path,
    "model.weights": readers.whole_weights,
    "sampling.triplets": readers.whole_path,
    "distillation.teacher": readers.whole_path,
}


def _plans_steps(given: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether minutes may have made epochs of other lengths of the given ones.

    Longer ones fill the minutes; a shorter one is the only one.
    """
    epochs = [key for key in given if PHASE_EPOCHS.fullmatch(key)]
    stages = {key.split(".")[1] for key in epochs}
    if not given[STEPS] or len(stages) > 1:
        return False
    if any(given[key] is not None for key in epochs):
        return False
    return stored[STEPS] > given[STEPS] or all(
        stored.get(key) == 1 for key in epochs
    )


class RunFolder(ClaimedFolder):
    """Paths and files of one run.

    A run is finished when its `metrics.json` exists, which is written last.

    Args:
        path: The folder. Only `lock` and `create` make it.
    """

    kind = "a run folder"
    record_name = "config.yaml"
    lock_name = "checkpoints/.lock"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__(path)
        self.metrics = self.path / "metrics.json"
        self.per_query = self.path / "per_query.npz"
        self.history = self.path / "history.csv"
        self.log = self.path / "log.txt"
        self.embedder = self.path / "embedder.keras"
        self.checkpoints = self.path / "checkpoints"
        self.last_checkpoint = self.checkpoints / "last.npz"
        self.best_checkpoint = self.checkpoints / "best.npz"
        self.unseen = self.path / "unseen.npz"
        self.tensorboard = self.path / "tensorboard"
        self.export = self.path / "export"
        self.report = self.path / "report.html"

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Opens an existing run.

        Raises:
            UsageError: If the folder does not exist or holds no run.
        """
        folder = cls(path)
        if not folder.path.is_dir():
            raise UsageError(
                f"There is no run folder {folder.path}. Train one with `fit` "
                "first, or name another."
            )
        if not folder.exists:
            raise UsageError(
                f"{folder.path} is not a run folder: it has no `config.yaml`."
            )
        return folder

    @property
    def finished(self) -> bool:
        """Whether the run is finished."""
        return self.metrics.is_file()

    @property
    def holds_work(self) -> bool:
        """Whether something would be lost if the run began again."""
        work = (self.last_checkpoint, self.embedder, self.metrics, self.history)
        return any(os.path.lexists(one) for one in work)

    def check_may_write(self, resume: bool) -> None:
        """Raises if this run must not write to the folder.

        Raises:
            UsageError: If the folder holds the work of a run and `resume` is
                false, or holds something that is not a run.
        """
        self.check_free()
        if self.exists and self.holds_work and not resume:
            state = "a finished" if self.finished else "an unfinished"
            raise UsageError(
                f"{self.path} already holds {state} run. Pass `resume=True` "
                "to go on with it, or choose another `output`."
            )

    def check_config(self, config: RunConfig) -> None:
        """Raises if a run would be resumed with other settings.

        Raises:
            UsageError: If `config` differs; names the first differences.
        """
        stored = flatten(self.load_config().model_dump(mode="json"))
        given = flatten(config.model_dump(mode="json"))
        settled = {
            key: value
            for key, value in stored.items()
            if OPEN.fullmatch(key) and given.get(key, 0) in (None, "auto")
        }
        if stored["minutes"] is not None:
            if not stored["refit"]:
                # They were too few for a refit, or none was wanted.
                settled["refit"] = stored["refit"]
            if stored[STEPS] and _plans_steps(given, stored):
                settled[STEPS] = stored[STEPS]
        for values in (stored, given):
            values |= {
                key: whole(values[key])
                for key, whole in PATHS.items()
                if key in values
            }
            # A final training may follow a measured run at any time.
            values.pop("final", None)
        self.check_same(stored, given | settled)

    def create(self, config: RunConfig) -> None:
        """Makes the folder and saves the configuration."""
        self.checkpoints.mkdir(parents=True, exist_ok=True)
        write_text(self.record, dump_run_config(config))

    def load_config(self) -> RunConfig:
        """Reads the configuration that the run was started with."""
        return load_run_config(self.record)

    def start_checkpoint(self, stage: int) -> Path:
        """Returns the file of the weights that a stage starts from."""
        return self.checkpoints / f"start{stage or ''}.npz"

    def baseline(self, name: str) -> Path:
        """Returns the file of a baseline's metrics of every query."""
        return self.checkpoints / f"{name}.npz"

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Writes `metrics.json`, which marks the run as finished."""
        write_json(self.metrics, metrics)

    def read_metrics(self) -> dict[str, Any]:
        """Reads `metrics.json`.

        Raises:
            UsageError: If the run is not finished, or the file does not hold
                the results of one.
        """
        if not self.finished:
            raise UsageError(
                f"{self.path} holds an unfinished run. Finish it with `fit` "
                "and `resume=True`."
            )
        content, what = load_json(self.metrics), "the results of a run"
        return check_fields(content, Results, self.metrics, what)

    def write_history(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Writes `history.csv`, one row per epoch of every phase."""
        columns = list(dict.fromkeys(key for row in rows for key in row))
        values = ([row.get(name) for name in columns] for row in rows)
        write_text(self.history, csv_text([columns, *values]))
