"""The epochs of a run, read from its `history.csv`."""

import csv
import dataclasses
from pathlib import Path

import numpy as np

_WORDS = ("stage", "phase", "epoch")


@dataclasses.dataclass(frozen=True, eq=False)
class History:
    """One row per epoch of every phase, in the order of training.

    Args:
        phases: The stage and phase of each epoch, such as `main/train`.
        columns: Dict of the numbers that were written down to float arrays
            `(epochs,)`, NaN in epochs without one.
    """

    phases: list[str]
    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.phases)

    @property
    def starts(self) -> list[tuple[int, str]]:
        """Where each phase starts, and its name."""
        return [
            (epoch, phase)
            for epoch, phase in enumerate(self.phases)
            if epoch == 0 or phase != self.phases[epoch - 1]
        ]

    def starting_with(self, *prefixes: str) -> dict[str, np.ndarray]:
        """The columns whose names start so and that hold any number."""
        return {
            name: values
            for name, values in self.columns.items()
            if name.startswith(prefixes) and np.isfinite(values).any()
        }


def read_history(path: Path) -> History:
    """Reads `history.csv`; a run without one has no epochs."""
    if not path.is_file():
        return History([], {})
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in (rows[0] if rows else ()) if name not in _WORDS]
    return History(
        [f"{row['stage']}/{row['phase']}" for row in rows],
        {
            name: np.array([_number(row[name]) for row in rows])
            for name in names
        },
    )


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")
