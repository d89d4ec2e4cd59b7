"""The curves of a training, by kind."""

from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.report import charts
from keras_dml.run.history import read_history

_CHARTS = (
    ("Loss", ("loss", "val_loss"), False),
    (
        "Validation",
        ("val_recall", "val_r_precision", "val_map", "val_mrr"),
        False,
    ),
    ("Learning rates", ("learning_rate",), True),
    ("Temperature", ("temperature",), True),
    ("Effective dimension", ("val_effective_dim",), False),
)


def training_curves(
    path: Path, monitor: str, selected: bool
) -> tuple[int, list[dict[str, Any]]]:
    """Draws what `history.csv` tells, by epoch.

    Args:
        path: The file.
        monitor: The column that chose the epoch, such as `val_map@r`.
        selected: Whether it did.

    Returns:
        Tuple of the number of epochs and one dict of name, chart and
        description for each kind of column that is there.
    """
    history = read_history(path)
    kept = history.best_epoch(monitor) if selected else None
    drawn = []
    for name, prefixes, logarithmic in _CHARTS:
        columns = history.starting_with(*prefixes)
        if columns:
            drawn.append(
                {
                    "name": name,
                    "uri": charts.curves(
                        columns,
                        history.starts,
                        logarithmic=logarithmic,
                        kept=kept,
                    ),
                    "alt": _in_words(columns),
                }
            )
    return len(history), drawn


def _in_words(columns: dict[str, np.ndarray]) -> str:
    """What a chart shows, for those who cannot see it."""
    sentences = []
    for name, values in columns.items():
        finite = values[np.isfinite(values)]
        sentences.append(
            f"{name} goes from {finite[0]:.4g} to {finite[-1]:.4g}"
        )
    return "; ".join(sentences) + "."
