"""Draws horizontal bars with error bars: a metric of arms or of names."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keras_dml.comparison.page.panels import Panel, line_names, make_axes
from keras_dml.plotting import COLORS, styled
from keras_dml.wording import metric_title


def draw_bars(panels: Sequence[Panel], metric: str) -> Figure:
    """Draws horizontal bars with error bars; numbers stand at the right.

    Args:
        panels: The panels; each place has a bar for each line.
        metric: Name of the metric.
    """
    names = line_names(panels)
    heights = [
        0.24 * len(panel.places) * _group_size(panel) + 0.1 for panel in panels
    ]
    labels = [str(place) for panel in panels for place in panel.places]
    with styled():
        figure, grid = make_axes(
            panels, heights, [max(labels, key=len), *names]
        )
        for axes, panel in zip(grid, panels, strict=True):
            _draw_groups(axes, panel, names)
            axes.set_xlabel(metric_title(metric))
    return figure


def _group_size(panel: Panel) -> float:
    """Returns the height of a place's bars and the gap below, in bars."""
    return len(panel.lines) + (0.6 if len(panel.lines) > 1 else 0.0)


def _draw_groups(axes: Axes, panel: Panel, names: list[str]) -> None:
    places, size, highest = panel.places, _group_size(panel), 0.0
    for number, (name, points) in enumerate(panel.lines.items()):
        color = COLORS[names.index(name) % len(COLORS)]
        for place, point in points.items():
            row, reach = places.index(place) * size + number, point.reach
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
    last = len(panel.lines) - 1
    axes.set_yticks(
        [number * size + last / 2 for number in range(len(places))],
        [str(place) for place in places],
    )
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.set_ylim((len(places) - 1) * size + last + 0.5, -0.5)
    axes.set_xlim(0, highest * 1.02 or 1)
