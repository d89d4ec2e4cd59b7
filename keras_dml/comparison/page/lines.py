"""Draws lines with error bars: a metric against numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keras_dml.comparison.page.panels import LINE, Panel, line_names, make_axes
from keras_dml.plotting import line_style, styled
from keras_dml.wording import metric_title


def draw_lines(
    panels: Sequence[Panel], x_name: str, metric: str, base: float | None
) -> Figure:
    """Draws lines with error bars; legends list them from top to bottom.

    Args:
        panels: The panels; their places are numbers.
        x_name: The label of the axis of places.
        metric: Name of the metric.
        base: The base of a logarithmic axis; `None` for a linear one.
    """
    names = line_names(panels)
    tall = max(2.6, *(LINE * len(panel.lines) for panel in panels))
    with styled():
        figure, grid = make_axes(panels, [tall] * len(panels), names)
        for axes, panel in zip(grid, panels, strict=True):
            if base is not None:
                axes.set_xscale("log", base=base)
            drawn = _draw_curves(axes, panel, names, base)
            axes.set(xlabel=x_name, ylabel=metric_title(metric))
            axes.set_ylim(*_limits(panel))
            if len(names) > 1:
                ends = {
                    name: line[max(line)].mean
                    for name, line in panel.lines.items()
                }
                order = sorted(ends, key=lambda name: -ends[name])
                axes.legend(
                    [drawn[name] for name in order],
                    order,
                    loc="upper left",
                    bbox_to_anchor=(1.01, 1),
                    borderaxespad=0,
                    labelspacing=0.3,
                )
    return figure


def _draw_curves(
    axes: Axes, panel: Panel, names: list[str], base: float | None
) -> dict[str, Any]:
    places = sorted(panel.places)
    low, high, count = places[0], places[-1], len(panel.lines)
    drawn = {}
    for number, (name, points) in enumerate(panel.lines.items()):
        own = np.asarray(sorted(points))
        # Shifted a little, so that error bars do not hide each other.
        share = (number - (count - 1) / 2) * min(0.006, 0.04 / count)
        drawn[name] = axes.errorbar(
            own + share * (high - low)
            if base is None
            else own * (high / low) ** share,
            [points[place].mean for place in own],
            yerr=[points[place].reach for place in own],
            capsize=2,
            linewidth=1.2,
            elinewidth=0.8,
            markersize=4,
            **line_style(names.index(name)),
        )
    labels = [f"{place:g}" for place in places]
    gaps = np.diff(places if base is None else np.log(places))
    # A letter takes about 2 % of the axis.
    if gaps.min() / gaps.sum() > 0.02 * (max(map(len, labels)) + 1):
        axes.set_xticks(places, labels)
        axes.minorticks_off()
    return drawn


def _limits(panel: Panel) -> tuple[float, float]:
    """Returns limits with room for all means; wide intervals are cut."""
    points = panel.points
    means = [point.mean for point in points]
    span = max(max(means) - min(means), 0.02)
    low = min(point.mean - min(point.reach, span) for point in points)
    high = max(point.mean + min(point.reach, span) for point in points)
    edge = max(0.05 * (high - low), 0.005)
    return low - edge, high + edge
