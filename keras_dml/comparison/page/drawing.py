"""What all figures share: colours, sizes, labels that keep apart, files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from scipy.optimize import isotonic_regression

from keras_dml.files import replacing

# Told apart by people with any colour vision (Okabe and Ito).
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
)
# As many as have no common factor with the colours: pairs repeat late.
MARKERS = ("o", "s", "^", "D", "v")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)))
GREY = "#57606a"
FONT_SIZE = 9
# Between the lines of a list of labels, in inches.
LINE_HEIGHT = 0.17
_STYLE: Any = {
    "svg.hashsalt": "keras-dml",
    "font.size": FONT_SIZE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d8dee4",
    "grid.linewidth": 0.6,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
}


def styled():
    """A context in which figures are drawn and saved."""
    return matplotlib.rc_context(_STYLE)


def line_style(number: int) -> dict[str, Any]:
    """Colour, marker and dashes of a line; no two of the first 35 agree."""
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[number % len(MARKERS)],
        "linestyle": DASHES[number // len(COLOURS) % len(DASHES)],
    }


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """The width of a text in inches."""
    if not text.strip():
        return 0.0
    width = TextPath((0, 0), text, size=size).get_extents().width
    # Letters moved to whole pixels make a line a little wider.
    return float(width) / 72 * 1.04


def widest(texts: Sequence[str], size: float = FONT_SIZE) -> float:
    """The width of the widest of several texts in inches."""
    return max((text_width(text, size) for text in texts), default=0.0)


def kept_apart(
    wanted: Sequence[float], gap: float, low: float, high: float
) -> np.ndarray:
    """Places as near as can be to those wanted, at least `gap` apart.

    Args:
        wanted: Float array `(n,)`.
        gap: Float, the least distance; smaller where there is no room.
        low: Float, the first place there is.
        high: Float, the last one.

    Example:

    >>> kept_apart([1.0, 1.0], gap=0.5, low=0, high=10)
    array([0.75, 1.25])
    """
    places = np.asarray(wanted, np.float64)
    count = len(places)
    if count > 1:
        gap = min(gap, (high - low) / (count - 1))
    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(count)
    free = isotonic_regression(places[order] - steps).x
    apart = np.empty(count)
    apart[order] = np.clip(free, low, max(low, high - steps[-1])) + steps
    return apart


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure as PNG at 150 dots an inch and as SVG.

    Args:
        figure: What to write.
        path: The files' path without an ending.
    """
    with styled():
        for kind, metadata in (("png", {}), ("svg", {"Date": None})):
            with replacing(path.with_name(f"{path.name}.{kind}")) as temporary:
                figure.savefig(
                    temporary, format=kind, dpi=150, metadata=metadata
                )
