"""Horizontal bars with error bars, their numbers beside the frame."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keras_dml.comparison.page.drawing import widest
from keras_dml.comparison.page.panels import (
    ABOVE,
    BELOW,
    EDGE,
    PLOT_WIDTH,
    Panel,
    add_note,
    add_panel,
    full_width,
    places_of,
    reach_of,
)
from keras_dml.plotting import COLORS, styled

# Inches.
_BAR_HEIGHT = 0.24
# Between groups of bars, in bars.
_GAP = 0.6


def draw_bars(panels: Sequence[Panel], y_name: str) -> Figure:
    """Draws horizontal bars from zero with error bars and their numbers.

    Args:
        panels: One below the other.
        y_name: What the length of bars is.
    """
    lines = list(
        dict.fromkeys(name for panel in panels for name in panel.lines)
    )
    places = [places_of([panel]) for panel in panels]
    left = widest([str(place) for own in places for place in own]) + 0.3
    right = 0.6 if lines == [""] else 0.8 + widest(lines)
    heights = [
        _BAR_HEIGHT * len(own) * _group_size(panel) + 0.1
        for own, panel in zip(places, panels, strict=True)
    ]
    width = full_width(left + PLOT_WIDTH + right, left, panels)
    height = sum(heights) + len(panels) * (ABOVE + BELOW) + 2 * EDGE
    top = 0.0
    with styled():
        figure = Figure(figsize=(width, height))
        for panel, own, tall in zip(panels, places, heights, strict=True):
            top += ABOVE
            axes = add_panel(figure, left, top, PLOT_WIDTH, tall)
            _draw_groups(axes, panel, own, lines)
            axes.set(title=panel.title, xlabel=y_name)
            top += tall + BELOW
        add_note(figure, panels)
    return figure


def _group_size(panel: Panel) -> float:
    """The room of a group, in bars."""
    return len(panel.lines) + (_GAP if len(panel.lines) > 1 else 0.0)


def _draw_groups(
    axes: Axes, panel: Panel, places: Sequence[Any], lines: Sequence[str]
) -> None:
    """Bars of each place side by side, with numbers beside the frame."""
    size = _group_size(panel)
    highest = 0.0
    for number, (name, points) in enumerate(panel.lines.items()):
        color = COLORS[lines.index(name) % len(COLORS)]
        for place, point in points.items():
            row = places.index(place) * size + number
            reach = reach_of(point)
            highest = max(highest, point.mean + min(reach, point.mean / 2))
            axes.barh(row, point.mean, 0.8, color=color, alpha=0.75)
            if reach:
                axes.errorbar(
                    point.mean, row, xerr=reach, color="black", capsize=2
                )
            axes.annotate(
                f"{point.mean:.3f}  {name}".rstrip(),
                (1, row),
                (6, 0),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                va="center",
                annotation_clip=False,
            )
    middle = (len(panel.lines) - 1) / 2
    axes.set_yticks(
        [number * size + middle for number in range(len(places))],
        [str(place) for place in places],
    )
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(places) * size - 0.5 - _GAP * (size > 1), -0.5)
    axes.set_xlim(0, highest * 1.02 or 1)
