"""What came of a search."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keras_dml.config.yaml_files import dump_yaml
from keras_dml.files import write_text


@dataclass(frozen=True)
class Trial:
    """Settings that were tried.

    Args:
        number: Integer, counted from 0.
        parameters: Dict of dotted keys to values.
        state: `"complete"`, `"pruned"` (stopped early), `"failed"`,
            `"running"` or `"waiting"`.
        value: The best validation value; of a pruned trial, until it was
            stopped. `None` if there is none.
        epochs: Integer, the epochs that were trained.
        seconds: Float, how long these took.
        run: Name of the run folder.
        reason: Why it failed.
    """

    number: int
    parameters: dict[str, Any]
    state: str
    value: float | None = None
    epochs: int = 0
    seconds: float = 0.0
    run: str = ""
    reason: str = ""


@dataclass(frozen=True)
class TuningResult:
    """All trials of a search; at least one is complete.

    Args:
        metric: Name of the validation metric.
        trials: The trials by number.
        importances: Dict of settings to their share of the values' variance,
            largest first; empty if there are too few trials.
    """

    metric: str
    trials: Sequence[Trial]
    importances: dict[str, float] = field(default_factory=dict)

    @property
    def best(self) -> Trial:
        """The best of the trials that came to their end; the first of equals.

        The best of many validation values is too high by chance. The test
        classes decide what the settings are worth.
        """
        complete = [x for x in self.trials if x.state == "complete"]
        return max(complete, key=lambda trial: trial.value or 0.0)

    def count(self, state: str) -> int:
        """How many trials are in a state."""
        return sum(trial.state == state for trial in self.trials)


@dataclass(frozen=True)
class ArmTuning:
    """What the search of one arm of a plan came to.

    Args:
        source: The data.
        backbone: The network; `None` is the recipe's own.
        arm: Name of the arm.
        result: Its trials.
    """

    source: str
    backbone: str | None
    arm: str
    result: TuningResult


def write_trials(path: Path, trials: Sequence[Trial]) -> None:
    """Writes the trials as CSV, one row each, one column per setting."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    keys = list(trials[0].parameters) if trials else []
    writer.writerow(
        [
            *("number", *keys, "value", "state"),
            *("epochs", "seconds", "run", "reason"),
        ]
    )
    for trial in trials:
        writer.writerow(
            [
                trial.number,
                *(_cell(trial.parameters[key]) for key in keys),
                "" if trial.value is None else trial.value,
                *(trial.state, trial.epochs, round(trial.seconds, 2)),
                *(trial.run, trial.reason),
            ]
        )
    write_text(path, buffer.getvalue())


def write_best(path: Path, trial: Trial) -> None:
    """Writes the best settings as YAML, for `set` of a plan or `--set`."""
    write_text(path, dump_yaml(trial.parameters))


def _cell(value: Any) -> Any:
    """Lists and mappings as JSON, which YAML reads too."""
    if value is None or isinstance(value, (bool, list, dict)):
        return json.dumps(value)
    return value
