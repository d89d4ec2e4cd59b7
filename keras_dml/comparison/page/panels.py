"""The panels of a figure: what is drawn, for each data set and network."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keras_dml.comparison.records import RunRecord, grouped
from keras_dml.comparison.summary import Summary, summarize_runs
from keras_dml.plotting import GRAY

# The height of a line of text in inches.
LINE = 0.19
_NOTE = "error bars: 95 % interval of the mean (Student's t), cut at the frame"


class Panel(NamedTuple):
    """One data set and network of a figure.

    Args:
        title: The text above the panel.
        lines: Dict from the name of a line to its points, a dict from places
            on the axis to `Summary`.
    """

    title: str
    lines: Mapping[str, Mapping[Any, Summary]]

    @property
    def places(self) -> list[Any]:
        """The places of all lines, in the order they first appear."""
        return list(
            dict.fromkeys(p for line in self.lines.values() for p in line)
        )

    @property
    def points(self) -> list[Summary]:
        """The points of all lines."""
        return [p for line in self.lines.values() for p in line.values()]


def make_panel(
    title: str,
    runs: Iterable[RunRecord],
    metric: str,
    line: Callable[[RunRecord], str],
    place: Callable[[RunRecord], Any],
) -> Panel:
    """Summarizes runs as the points of a panel.

    Args:
        title: The text above the panel.
        runs: Runs of any state.
        metric: Name of a metric.
        line: Function from a run to the name of its line.
        place: Function from a run to its place on the axis.
    """
    lines = {}
    for name, own in grouped(runs, line).items():
        points = {
            value: summary
            for value, there in grouped(own, place).items()
            if (summary := summarize_runs(there, metric))
        }
        if points:
            lines[name] = points
    return Panel(title, lines)


def line_names(panels: Iterable[Panel]) -> list[str]:
    """Returns the names of the lines of all panels, each once."""
    return list(dict.fromkeys(name for panel in panels for name in panel.lines))


def make_axes(
    panels: Sequence[Panel], heights: Sequence[float], names: Sequence[str]
) -> tuple[Figure, list[Axes]]:
    """Makes axes below each other, with titles and a note on error bars.

    Args:
        panels: The panels, one for each axes.
        heights: The heights of the axes in inches.
        names: The texts that stand beside the axes.
    """
    # Code in the titles of pages; a figure has no type for it.
    plain = [panel.title.replace("`", "") for panel in panels]
    titles = [textwrap.fill(title, 70) for title in plain]
    rows = sum(5 + title.count("\n") for title in titles) + 2
    width = 6 + 0.08 * max(map(len, names))
    figure = Figure(
        figsize=(width, sum(heights) + LINE * rows), layout="constrained"
    )
    grid = figure.subplots(len(panels), squeeze=False, height_ratios=heights)
    for axes, title in zip(grid.flat, titles, strict=True):
        axes.set_title(title)
    repeated = any(
        point.count > 1 for panel in panels for point in panel.points
    )
    note = _NOTE if repeated else "one repetition each: no error bars"
    figure.supxlabel(note, x=0.01, ha="left", size=8, color=GRAY)
    return figure, list(grid.flat)
