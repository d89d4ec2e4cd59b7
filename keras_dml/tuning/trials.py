"""The trials of a tuning: their trainings, values and files."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from keras_dml.brief import Brief
from keras_dml.files import csv_text, write_text
from keras_dml.run.folder import RunFolder
from keras_dml.run.history import read_history
from keras_dml.run.processes import TrainingProcess

Report = Callable[[int, float], bool]


@dataclass(frozen=True)
class Trial:
    """One trial: its settings and its outcome.

    Args:
        number: Integer, counted from 0.
        parameters: Dict of dotted keys to values.
        state: `"complete"`, `"pruned"` (stopped early), `"failed"`,
            `"running"` or `"waiting"`.
        value: The best validation value; for a pruned trial, the best until
            it was stopped. `None` if there is none.
        epochs: Integer, the number of trained epochs.
        seconds: Float, how long these epochs took.
        run: Name of the run folder.
        reason: Why the trial failed.
    """

    number: int
    parameters: dict[str, Any]
    state: str
    value: float | None = None
    epochs: int = 0
    seconds: float = 0.0
    run: str = ""
    reason: str = ""


@dataclass(frozen=True, repr=False)
class TuningResult(Brief):
    """All trials of a tuning; at least one is complete.

    Args:
        metric: Name of the validation metric.
        trials: The trials by number.
        importances: Dict from settings to their share of the values'
            variance, largest first; empty if there are too few trials.
    """

    metric: str
    trials: Sequence[Trial]
    importances: dict[str, float] = field(default_factory=dict)

    def _brief_title(self) -> str:
        return f"TuningResult: {self.metric} {self.best.value:.4f} at best"

    def _brief_rows(self) -> list[dict[str, Any]]:
        return [
            {"trial": number, "state": one.state, self.metric: one.value}
            for number, one in enumerate(self.trials)
        ]

    @property
    def best(self) -> Trial:
        """The best complete trial; the first one among equals.

        The best of many validation values is too high by chance. The test
        classes decide what the settings are worth.
        """
        values = {
            number: trial.value
            for number, trial in enumerate(self.trials)
            if trial.state == "complete" and trial.value is not None
        }
        return self.trials[max(values, key=lambda number: values[number])]

    def count(self, state: str) -> int:
        """Counts the trials in a state."""
        return sum(trial.state == state for trial in self.trials)


class Progress(NamedTuple):
    """The validation values of a trial so far.

    Args:
        values: Mapping from the numbers of validated epochs to their values.
            For a trial on several folds, mapping from each finished fold to
            the mean of the best values up to this fold.
        best: The best value of the last stage that validates, or the mean of
            these values over the folds. Defaults to `None`.
        epochs: Integer, the number of finished epochs. Defaults to `0`.
        seconds: Float, how long these epochs took. Defaults to `0.0`.
    """

    values: Mapping[int, float] = {}
    best: float | None = None
    epochs: int = 0
    seconds: float = 0.0


def read_progress(runs: Sequence[Path], column: str) -> Progress:
    """Reads the values of a trial from its runs, also while they train.

    Args:
        runs: The run folders, one for each fold.
        column: Column of `history.csv`, such as `"val_map@r"`.
    """
    histories = [read_history(RunFolder(run).history) for run in runs]
    best = [
        history.values(column)[epoch]
        for history in histories
        if (epoch := history.best_epoch(column)) is not None
    ]
    means = [sum(best[: n + 1]) / (n + 1) for n in range(len(best))]
    of_folds = {
        fold: mean
        for fold, (mean, run) in enumerate(zip(means, runs, strict=False))
        if RunFolder(run).finished
    }
    return Progress(
        histories[0].values(column) if len(runs) == 1 else of_folds,
        means[-1] if means else None,
        sum(map(len, histories)),
        sum(history.seconds for history in histories),
    )


@dataclass(eq=False)
class TrialTraining:
    """The trainings of one trial, one fold after the other, see `supervise`.

    Every new value is reported, and the report decides whether to stop. A
    single training may stop after any epoch. A trial on several folds stops
    only between two folds, because folds differ too much to judge a trial by
    a part of one.

    Args:
        trial: The trial, as the study knows it.
        trainings: One training for each fold, not started.
        column: Column of `history.csv` that decides.
        report: Takes the number and the value of an epoch or of a fold, each
            once; returns whether the trial should stop there.
        reported: Set of the numbers that were reported before.

    Attributes:
        pruned: Whether the report stopped the trial.
        progress: The values so far.
        fold: The number of the training that started last.
    """

    trial: Any
    trainings: Sequence[TrainingProcess]
    column: str
    report: Report
    reported: set[int]
    pruned: bool = False
    progress: Progress = field(default_factory=Progress)
    fold: int = 0

    @property
    def training(self) -> TrainingProcess:
        """The training that started last."""
        return self.trainings[self.fold]

    @property
    def name(self) -> str:
        """Name of the run that is training."""
        return self.training.name

    @property
    def exit_code(self) -> int | None:
        """The exit code of the training that started last."""
        return self.training.exit_code

    def poll(self) -> bool:
        """Checks the trainings; returns whether the trial has ended."""
        ended = self.training.poll()
        last = self.fold == len(self.trainings) - 1
        runs = [training.folder.path for training in self.trainings]
        self.progress = read_progress(runs, self.column)
        for number, value in self.progress.values.items():
            if not self.pruned and number not in self.reported:
                self.reported.add(number)
                over = ended and last
                self.pruned = self.report(number, value) and not over
        if self.pruned and not ended:
            self.stop()
        if not ended:
            return False
        if last or self.pruned or self.exit_code or self.progress.best is None:
            return True
        self.fold += 1
        return False

    def reason(self) -> str:
        """Returns why a training failed, and on which fold."""
        where = f"fold {self.fold}: " if len(self.trainings) > 1 else ""
        return where + self.training.reason()

    def stop(self) -> None:
        """Asks the process to save itself and end; kills it after a while."""
        self.training.stop()

    def wait(self) -> None:
        """Waits until a process that was asked to stop has ended."""
        self.training.wait()


def write_trials(path: Path, trials: Sequence[Trial]) -> None:
    """Writes the trials as CSV, one row each, one column per setting."""
    keys = list(trials[0].parameters) if trials else []
    outcome = ("value", "state", "epochs", "seconds", "run", "reason")
    rows: list[list[Any]] = [["number", *keys, *outcome]]
    for trial in trials:
        rounded = replace(trial, seconds=round(trial.seconds, 2))
        settings = [_cell(trial.parameters[key]) for key in keys]
        values = [getattr(rounded, key) for key in outcome]
        rows.append([trial.number, *settings, *values])
    write_text(path, csv_text(rows))


def _cell(value: Any) -> Any:
    """Returns lists and mappings as JSON, which is valid YAML too."""
    if value is None or isinstance(value, (bool, list, dict)):
        return json.dumps(value)
    return value
