"""What line and bar figures share: panels, their places and the note below."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keras_dml.comparison.page.drawing import text_width, widest
from keras_dml.comparison.summary import Summary
from keras_dml.plotting import GRAY

# Inches.
PLOT_WIDTH = 4.6
LEFT, ABOVE, BELOW, EDGE = 0.75, 0.45, 0.5, 0.15
_NOTE = "error bars: 95 % interval of the mean (Student's t), cut at the frame"


class Panel(NamedTuple):
    """One data set and network of a figure.

    Args:
        title: What stands above it.
        lines: Dict of lines to dicts of places on the axis to `Summary`.
    """

    title: str
    lines: Mapping[str, Mapping[Any, Summary]]


def names_of(panels: Sequence[Panel]) -> list[str]:
    """Names of all lines, in the order they first appear."""
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def places_of(panels: Sequence[Panel]) -> list[Any]:
    """Places of all lines, in the order they first appear."""
    lines = [line for panel in panels for line in panel.lines.values()]
    return list(dict.fromkeys(place for line in lines for place in line))


def add_panel(
    figure: Figure, left: float, top: float, wide: float, tall: float
) -> Axes:
    """Axes whose place is given in inches from the upper left corner."""
    width, height = figure.get_size_inches()
    return figure.add_axes(
        (
            left / width,
            1 - (top + tall) / height,
            wide / width,
            tall / height,
        )
    )


def full_width(width: float, left: float, panels: Sequence[Panel]) -> float:
    """The width that leaves room for titles and the note, in inches."""
    titles = widest([panel.title for panel in panels], 10)
    return max(width, left + titles + 0.2, text_width(_NOTE, 8) + 0.4)


def add_note(figure: Figure, panels: Sequence[Panel]) -> None:
    """Says what error bars are, where there are any."""
    repeated = any(
        point.count > 1
        for panel in panels
        for line in panel.lines.values()
        for point in line.values()
    )
    text = _NOTE if repeated else "one repetition each: no error bars"
    height = figure.get_size_inches()[1]
    figure.text(0.02, 0.1 / height, text, size=8, color=GRAY)


def reach_of(point: Summary) -> float:
    """Half an interval, zero where there is none."""
    return 0.0 if math.isnan(point.high) else point.high - point.mean
