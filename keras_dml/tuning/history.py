"""Validation values of a training, read while it runs."""

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple


class History(NamedTuple):
    """What the `history.csv` of a run says so far.

    Args:
        values: Numbers of the epochs that were validated, and their values.
        best: The best value of the last stage that validates, or `None`.
        epochs: Integer, the finished epochs.
        seconds: Float, how long they took.
    """

    values: Mapping[int, float] = {}
    best: float | None = None
    epochs: int = 0
    seconds: float = 0.0


def read_history(path: Path, column: str) -> History:
    """Reads the history of a run; an empty one if there is none yet.

    Args:
        path: The `history.csv`, which a training replaces after every epoch.
        column: Name of the values' column, such as `"val_map@r"`.

    Returns:
        The history.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        return History()
    values: dict[int, float] = {}
    stage, best = "", None
    for number, row in enumerate(rows):
        value = _number(row.get(column))
        if value is None:
            continue
        values[number] = value
        if row.get("stage", "") != stage:
            stage, best = row.get("stage", ""), None
        best = value if best is None else max(best, value)
    seconds = sum(_number(row.get("seconds")) or 0.0 for row in rows)
    return History(values, best, len(rows), seconds)


def mean_history(histories: Sequence[History]) -> History:
    """The trainings of a trial as one: the mean of their best values."""
    best = [one.best for one in histories if one.best is not None]
    return History(
        best=sum(best) / len(best) if best else None,
        epochs=sum(one.epochs for one in histories),
        seconds=sum(one.seconds for one in histories),
    )


def _number(text: str | None) -> float | None:
    """A finite number, or `None`: an epoch may not have been validated."""
    if not text:
        return None
    value = float(text)
    return value if math.isfinite(value) else None
