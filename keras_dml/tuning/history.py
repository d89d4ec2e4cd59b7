"""Validation values of a training, read while it runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from keras_dml.run import history as run_history


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
    history = run_history.read_history(path)
    values, best = history.values(column), history.best_epoch(column)
    return History(
        values,
        None if best is None else values[best],
        len(history),
        history.seconds,
    )


def mean_history(histories: Sequence[History]) -> History:
    """The trainings of a trial as one: the mean of their best values."""
    best = [one.best for one in histories if one.best is not None]
    return History(
        best=sum(best) / len(best) if best else None,
        epochs=sum(one.epochs for one in histories),
        seconds=sum(one.seconds for one in histories),
    )
