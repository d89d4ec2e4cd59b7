"""Widths of texts, and labels that keep apart."""

from collections.abc import Sequence

import numpy as np
from matplotlib.textpath import TextPath
from scipy.optimize import isotonic_regression

FONT_SIZE = 9
# Between the lines of a list of labels, in inches.
LINE_HEIGHT = 0.17


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
