"""Charts of a page, drawn by matplotlib without a display."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from keras_dml.plotting import (
    COLORS,
    DASHES,
    GRAY,
    NEGATIVE,
    POSITIVE,
    styled,
    svg,
)
from keras_dml.report.thumbnails import data_uri


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
    with styled():
        figure, axes = _axes()
        for number, (name, values) in enumerate(columns.items()):
            epochs = drawn_epochs(values, logarithmic)
            marker = "o" if len(epochs) < 30 else None
            axes.plot(
                epochs + 1,
                values[epochs],
                label=name,
                color=COLORS[number % len(COLORS)],
                # Equal curves show both: the later one has gaps.
                linestyle=DASHES[number % len(DASHES)],
                marker=marker,
                markersize=3,
            )
        if logarithmic:
            axes.set_yscale("log")
        for start, name in phases if len(phases) > 1 else ():
            axes.axvline(start + 0.5, color=GRAY, linestyle=":", linewidth=1)
            axes.annotate(
                f" {name}",
                (start + 0.5, 1),
                xycoords=("data", "axes fraction"),
                fontsize=8,
                color=GRAY,
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
        axes.legend()
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
    with styled():
        figure, axes = _axes()
        for shares, label, color, hatch in (
            (negative, "different classes", NEGATIVE, "//"),
            (positive, "one class", POSITIVE, None),
        ):
            axes.stairs(shares, edges, color=color, label=label)
            axes.stairs(
                shares, edges, fill=True, alpha=0.25, color=color, hatch=hatch
            )
        axes.set_xlabel(name)
        axes.set_ylabel("share of pairs")
        axes.legend()
        return _svg(figure)


def spectrum(shares: np.ndarray) -> str:
    """The share of the variance along each principal direction.

    Args:
        shares: Float array `(dim,)`, largest first.
    """
    with styled():
        figure, axes = _axes()
        axes.plot(np.arange(1, len(shares) + 1), shares, color=COLORS[0])
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
    return data_uri(svg(figure), "image/svg+xml")
