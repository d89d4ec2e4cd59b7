"""Charts of a page, drawn by matplotlib without a display."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from keras_dml.report.thumbnails import data_uri

# Told apart by people with any colour vision (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("-", (0, (5, 3)), (0, (2, 2)), (0, (7, 2, 1, 2)))
POSITIVE, NEGATIVE = "#1a7f37", "#b3261e"
_GREY = "#57606a"
_STYLE: Any = {
    "svg.hashsalt": "keras-dml",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _GREY,
    "axes.grid": True,
    "grid.color": "#d8dee4",
    "grid.linewidth": 0.6,
}


def drawn_epochs(values: np.ndarray, logarithmic: bool) -> np.ndarray:
    """Epochs whose value has a place on the axis: a rate of 0 has no log.

    >>> drawn_epochs(np.array([0.1, np.nan, 0.0]), logarithmic=True)
    array([0])
    """
    there = np.isfinite(values)
    return np.flatnonzero(there & (values > 0) if logarithmic else there)


def curves(
    columns: Mapping[str, np.ndarray],
    phases: Sequence[tuple[int, str]],
    *,
    logarithmic: bool = False,
    kept: int | None = None,
) -> str:
    """Values by epoch, one line a column.

    Args:
        columns: Dict of names to float arrays `(epochs,)`, NaN where missing.
        phases: First epoch and name of each phase, marked by a line.
        logarithmic: Whether the values' axis is. Defaults to `False`.
        kept: Integer, the epoch whose weights were kept. Defaults to `None`.

    Returns:
        The chart as a data URI.
    """
    with matplotlib.rc_context(_STYLE):
        figure, axes = _axes()
        for number, (name, values) in enumerate(columns.items()):
            epochs = drawn_epochs(values, logarithmic)
            marker = "o" if len(epochs) < 30 else None
            axes.plot(
                epochs + 1,
                values[epochs],
                label=name,
                color=COLOURS[number % len(COLOURS)],
                # Equal curves show both: the later one has gaps.
                linestyle=DASHES[number % len(DASHES)],
                marker=marker,
                markersize=3,
            )
        if logarithmic:
            axes.set_yscale("log")
        for start, name in phases if len(phases) > 1 else ():
            axes.axvline(start + 0.5, color=_GREY, linestyle=":", linewidth=1)
            axes.annotate(
                f" {name}",
                (start + 0.5, 1),
                xycoords=("data", "axes fraction"),
                fontsize=8,
                color=_GREY,
                va="bottom",
            )
        if kept is not None:
            axes.axvline(kept + 1, color=POSITIVE, linewidth=1)
            axes.annotate(
                "kept ",
                (kept + 1, 0),
                xycoords=("data", "axes fraction"),
                fontsize=8,
                color=POSITIVE,
                va="bottom",
                ha="right",
            )
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.legend(frameon=False, fontsize=9)
        return _svg(figure)


def histograms(
    edges: np.ndarray, positive: np.ndarray, negative: np.ndarray, name: str
) -> str:
    """Similarities of pairs of one class and of different classes.

    Args:
        edges: Float array `(bins + 1,)`.
        positive: Float array `(bins,)`, shares of the pairs of one class.
        negative: Float array `(bins,)`, shares of the other pairs.
        name: What the axis measures.
    """
    with matplotlib.rc_context(_STYLE):
        figure, axes = _axes()
        for shares, label, colour, hatch in (
            (negative, "different classes", NEGATIVE, "//"),
            (positive, "one class", POSITIVE, None),
        ):
            axes.stairs(shares, edges, color=colour, label=label)
            axes.stairs(
                shares, edges, fill=True, alpha=0.25, color=colour, hatch=hatch
            )
        axes.set_xlabel(name)
        axes.set_ylabel("share of pairs")
        axes.legend(frameon=False, fontsize=9)
        return _svg(figure)


def spectrum(shares: np.ndarray) -> str:
    """The share of the variance along each principal direction.

    Args:
        shares: Float array `(dim,)`, largest first.
    """
    with matplotlib.rc_context(_STYLE):
        figure, axes = _axes()
        axes.plot(np.arange(1, len(shares) + 1), shares, color=COLOURS[0])
        if shares[0] > 0:
            axes.set_yscale("log")
            least = max(float(shares[0]) * 1e-8, float(shares.min()) / 2)
            axes.set_ylim(bottom=least)
        axes.set_xlabel("direction")
        axes.set_ylabel("share of variance")
        return _svg(figure)


def _axes():
    figure = Figure(figsize=(7, 3), layout="constrained")
    return figure, figure.subplots()


def _svg(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return data_uri(buffer.getvalue(), "image/svg+xml")
