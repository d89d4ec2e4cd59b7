"""Reads the epochs of a run from `history.csv`."""

import csv
import dataclasses
from pathlib import Path

import numpy as np

from keras_dml.brief import Brief
from keras_dml.errors import UsageError

MAX_FLOAT32 = float(np.finfo(np.float32).max)
_WORDS = ("stage", "phase", "epoch")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class History(Brief):
    """The epochs of all phases in the order of training, one row per epoch.

    Args:
        phases: List of strings, the stage and phase of each epoch, such as
            `"main/train"`. Defaults to an empty list.
        columns: Dict of names to float arrays `(epochs,)`, with NaN for
            epochs without a number. Defaults to an empty dict.
    """

    phases: list[str] = dataclasses.field(default_factory=list)
    columns: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.phases)

    def _brief_title(self):
        epochs = "1 epoch" if len(self) == 1 else f"{len(self)} epochs"
        return f"History: {epochs}"

    def _brief_rows(self):
        numbers = {name: self.values(name) for name in self.columns}
        return [
            {"": name, "first": found[min(found)], "last": found[max(found)]}
            for name, found in numbers.items()
            if found
        ]

    @property
    def starts(self) -> list[tuple[int, str]]:
        """Pairs of the first epoch and the name of each phase."""
        return [
            (epoch, phase)
            for epoch, phase in enumerate(self.phases)
            if epoch == 0 or phase != self.phases[epoch - 1]
        ]

    @property
    def seconds(self) -> float:
        """Total time of the epochs in seconds."""
        return float(np.nansum(self.columns.get("seconds", 0.0)))

    def starting_with(self, *prefixes: str) -> dict[str, np.ndarray]:
        """Returns the columns that hold a number and start with a prefix."""
        return {
            name: values
            for name, values in self.columns.items()
            if name.startswith(prefixes) and np.isfinite(values).any()
        }

    def values(self, column: str) -> dict[int, float]:
        """Returns the finite numbers of a column by epoch."""
        values = self.columns.get(column, np.zeros(0))
        epochs = np.flatnonzero(np.isfinite(values))
        return {int(epoch): float(values[epoch]) for epoch in epochs}

    def best_epoch(self, column: str) -> int | None:
        """Returns the epoch with the highest number in the last stage.

        The last stage is the last one with a number in the column. If several
        epochs tie, the earliest one is the best.

        Args:
            column: Name of a column, such as `"val_map@r"`.

        Returns:
            Integer, or `None` if the column holds no number.
        """
        values = self.values(column)
        if not values:
            return None
        stages = {epoch: self.phases[epoch].split("/")[0] for epoch in values}
        last = stages[max(values)]
        return max(
            (epoch for epoch in values if stages[epoch] == last),
            key=lambda epoch: values[epoch],
        )

    def rises(self, column: str) -> bool:
        """Whether the last of several numbers of a column is the best.

        Args:
            column: Name of a column, such as `"val_map@r"`.
        """
        values = self.values(column)
        return len(values) > 1 and self.best_epoch(column) == max(values)


def read_history(path: Path) -> History:
    """Reads `history.csv`, also during the training.

    Args:
        path: The file, which a training replaces after each epoch.

    Returns:
        `History`, without epochs if there is no file yet.

    Raises:
        UsageError: If the file is not the table of a training.
    """
    try:
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, restval=""))
    except FileNotFoundError:
        return History()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise _other(path, str(error)) from error
    if not rows:
        return History()
    columns = list(rows[0])
    if not {*_WORDS} <= {*columns}:
        raise _other(path, f"the columns {columns[:4]}")
    if any(None in row for row in rows):
        raise _other(path, "a line of more values than columns")
    names = [name for name in columns if name not in _WORDS]
    return History(
        [f"{row['stage']}/{row['phase']}" for row in rows],
        {
            name: np.array([_number(row[name]) for row in rows])
            for name in names
        },
    )


def _other(path: Path, received: str) -> UsageError:
    return UsageError(
        f"{path} must be the table of a training, with the columns "
        f"{', '.join(_WORDS)}. Received: {received}. Restore it, or delete "
        "it to go on without."
    )


def _number(text: str) -> float:
    try:
        number = float(text or "nan")
    except ValueError:
        return float("nan")
    # No training computes larger ones, and no chart can draw them.
    return number if abs(number) <= MAX_FLOAT32 else float("nan")
