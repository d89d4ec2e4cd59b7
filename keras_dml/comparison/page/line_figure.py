"""Lines with error bars, named at their right ends."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from keras_dml.comparison.page.drawing import (
    LINE_HEIGHT,
    kept_apart,
    text_width,
    widest,
)
from keras_dml.comparison.page.panels import (
    ABOVE,
    BELOW,
    EDGE,
    LEFT,
    PLOT_WIDTH,
    Panel,
    add_note,
    add_panel,
    full_width,
    places_of,
    reach_of,
)
from keras_dml.plotting import line_style, styled

# Inches.
_PLOT_HEIGHT = 2.6


def draw_lines(
    panels: Sequence[Panel], x_name: str, y_name: str, base: float | None
) -> Figure:
    """Draws lines with error bars, named at their right ends.

    Args:
        panels: One below the other, of one size.
        x_name: What the horizontal axis is.
        y_name: What the vertical axis is.
        base: Base of a logarithmic axis, or `None`.
    """
    names = list(
        dict.fromkeys(name for panel in panels for name in panel.lines)
    )
    styles = {name: line_style(number) for number, name in enumerate(names)}
    most = max(len(panel.lines) for panel in panels)
    tall = max(_PLOT_HEIGHT, LINE_HEIGHT * most + 0.2)
    right = widest(names) + 0.75 if len(names) > 1 else 0.2
    width = full_width(LEFT + PLOT_WIDTH + right, LEFT, panels)
    height = len(panels) * (ABOVE + tall + BELOW) + 2 * EDGE
    with styled():
        figure = Figure(figsize=(width, height))
        for number, panel in enumerate(panels):
            top = number * (ABOVE + tall + BELOW) + ABOVE
            axes = add_panel(figure, LEFT, top, PLOT_WIDTH, tall)
            _draw_curves(axes, panel, styles, base)
            axes.set(title=panel.title, xlabel=x_name, ylabel=y_name)
            if len(names) > 1:
                _label_ends(axes, panel, styles, tall)
        add_note(figure, panels)
    return figure


def _draw_curves(
    axes: Axes,
    panel: Panel,
    styles: Mapping[str, Mapping[str, Any]],
    base: float | None,
) -> None:
    places = sorted(places_of([panel]))
    if base is not None:
        axes.set_xscale("log", base=base)
    for number, (name, points) in enumerate(panel.lines.items()):
        own = sorted(points)
        axes.errorbar(
            _shifted(own, places, number, len(panel.lines), base),
            [points[place].mean for place in own],
            yerr=[reach_of(points[place]) for place in own],
            capsize=2,
            linewidth=1.2,
            elinewidth=0.8,
            markersize=4,
            **styles[name],
        )
    if _have_room(places, base):
        axes.xaxis.set_major_locator(FixedLocator(places))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(places, [f"{place:g}" for place in places])
    axes.set_ylim(*_limits(panel))


def _have_room(places: Sequence[float], base: float | None) -> bool:
    """Whether all places can be named below the axis."""
    where = np.asarray(places) if base is None else np.log(places)
    gaps = np.diff(where) / (where[-1] - where[0]) * 0.9 * PLOT_WIDTH
    widths = np.array([text_width(f"{place:g}") for place in places])
    return bool((gaps > (widths[:-1] + widths[1:]) / 2 + 0.08).all())


def _shifted(
    places: Sequence[float],
    all_places: Sequence[float],
    number: int,
    count: int,
    base: float | None,
) -> np.ndarray:
    """Places of a line, moved a little so that error bars stay apart."""
    share = (number - (count - 1) / 2) * min(0.006, 0.04 / count)
    low, high = all_places[0], all_places[-1]
    if base is None:
        return np.asarray(places) + share * (high - low)
    return np.asarray(places) * (high / low) ** share


def _limits(panel: Panel) -> tuple[float, float]:
    """Room for all means, and for intervals that are not much wider."""
    lines = panel.lines.values()
    points = [point for line in lines for point in line.values()]
    means = [point.mean for point in points]
    span = max(max(means) - min(means), 0.02)
    low = min(point.mean - min(reach_of(point), span) for point in points)
    high = max(point.mean + min(reach_of(point), span) for point in points)
    edge = max(0.05 * (high - low), 0.005)
    return low - edge, high + edge


def _label_ends(
    axes: Axes,
    panel: Panel,
    styles: Mapping[str, Mapping[str, Any]],
    tall: float,
) -> None:
    """Names lines beside the frame, as high as they end."""
    low, high = axes.get_ylim()
    ends = [line[max(line)].mean for line in panel.lines.values()]
    wanted = [(end - low) / (high - low) for end in ends]
    gap = LINE_HEIGHT / tall
    heights = kept_apart(wanted, gap, 0.5 * gap, 1 - 0.5 * gap)
    inch = 1 / PLOT_WIDTH
    for (name, line), end, height in zip(
        panel.lines.items(), ends, heights, strict=True
    ):
        axes.annotate(
            "",
            (max(line), end),
            (1 + 0.22 * inch, height),
            xycoords="data",
            textcoords="axes fraction",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": styles[name]["color"],
                "linewidth": 0.5,
                "alpha": 0.6,
                "shrinkA": 0,
                "shrinkB": 3,
            },
        )
        axes.plot(
            1 + np.array([0.22, 0.36, 0.5]) * inch,
            [height] * 3,
            transform=axes.transAxes,
            clip_on=False,
            markevery=[1],
            markersize=4,
            linewidth=1.2,
            **styles[name],
        )
        axes.text(
            1 + 0.56 * inch,
            height,
            name,
            transform=axes.transAxes,
            va="center",
        )
