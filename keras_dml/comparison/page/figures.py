"""Draws quality by embedding size, by setting and by arm."""

import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keras_dml.comparison.records import (
    RunRecord,
    by_arm,
    grouped,
    network_of,
    trained_runs,
)
from keras_dml.comparison.summary import Summary, summarize_runs
from keras_dml.plotting import COLORS, GRAY, line_style, styled
from keras_dml.wording import metric_title

Namer = Callable[[RunRecord], str]

# An axis that spans a larger factor is logarithmic.
LARGE_SPAN = 20
# The height of a line of text in inches.
_LINE = 0.19
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
            dict.fromkeys(
                place for line in self.lines.values() for place in line
            )
        )


def quality_by_size(records: Iterable[RunRecord], metric: str) -> Figure | None:
    """Draws a metric against the embedding size, one line per arm.

    Error bars are the 95 % intervals of the means. Each data set, network and
    weights has its own panel.

    Args:
        records: Runs of any state.
        metric: Name of a metric.

    Returns:
        The figure, or `None` if no panel has two sizes.
    """
    panels = _panels(
        trained_runs(records),
        metric,
        lambda runs: lambda run: run.arm,
        lambda run: run.dim,
    )
    return _draw_lines(panels, "embedding size", metric, 2) if panels else None


def swept_factors(records: Iterable[RunRecord]) -> list[str]:
    """Returns the settings that have several values among the runs."""
    values: dict[str, set[str]] = {}
    for record in records:
        for factor, value in record.factors.items():
            values.setdefault(factor, set()).add(str(value))
    return [factor for factor, found in values.items() if len(found) > 1]


def quality_by_factor(
    records: Iterable[RunRecord], metric: str, factor: str
) -> Figure | None:
    """Draws a metric against a swept setting.

    Numbers are drawn on an axis, which is logarithmic if they are positive
    and span more than a factor of 20; other values are drawn as bars. Runs
    that also differ in embedding size or other settings form different lines.

    Args:
        records: Runs of any state.
        metric: Name of a metric.
        factor: Dotted key of a setting, one of `swept_factors`.

    Returns:
        The figure, or `None` if no panel has two values.
    """
    runs = [record for record in records if factor in record.factors]
    numeric = all(_is_number(run.factors[factor]) for run in runs)

    def place(run: RunRecord) -> Any:
        value = run.factors[factor]
        return float(value) if numeric else str(value)

    panels = _panels(runs, metric, lambda own: _line_namer(own, factor), place)
    if not panels:
        return None
    if not numeric:
        return _draw_bars(
            [Panel(f"{title}: {factor}", lines) for title, lines in panels],
            metric,
        )
    values = [place for panel in panels for place in panel.places]
    wide = min(values) > 0 and max(values) > LARGE_SPAN * min(values)
    return _draw_lines(panels, factor, metric, 10 if wide else None)


def quality_by_arm(records: Iterable[RunRecord], metric: str) -> Figure | None:
    """Draws every arm's mean and interval, the best at the top.

    Args:
        records: Runs of any state.
        metric: Name of a metric.

    Returns:
        The figure, or `None` if no run is finished.
    """
    panels = []
    for network, runs in grouped(records, network_of).items():
        sizes = sorted(grouped(runs, lambda run: run.dim).items())
        for dim, own in sizes:
            means = {
                arm: summary
                for arm, arm_runs in by_arm(own).items()
                if (summary := summarize_runs(arm_runs, metric))
            }
            best = sorted(means, key=lambda arm: -means[arm].mean)
            if best:
                size = f", {dim}-d" if len(sizes) > 1 else ""
                line = {arm: means[arm] for arm in best}
                panels.append(Panel(network.title + size, {"": line}))
    return _draw_bars(panels, metric) if panels else None


def _panels(
    records: Iterable[RunRecord],
    metric: str,
    namer: Callable[[list[RunRecord]], Namer],
    place: Callable[[RunRecord], Any],
) -> list[Panel]:
    """Returns the panels of networks with at least two places on the axis."""
    panels = []
    for network, runs in grouped(records, network_of).items():
        lines = {}
        for line, own in grouped(runs, namer(runs)).items():
            points = {
                value: summary
                for value, there in grouped(own, place).items()
                if (summary := summarize_runs(there, metric))
            }
            if points:
                lines[line] = points
        panel = Panel(network.title, lines)
        if len(panel.places) > 1:
            panels.append(panel)
    return panels


def _line_namer(runs: Sequence[RunRecord], factor: str) -> Namer:
    """Names runs by everything in which they differ except one setting."""
    others = [name for name in swept_factors(runs) if name != factor]
    several_sizes = len({run.dim for run in runs}) > 1

    def name(run: RunRecord) -> str:
        parts = [run.line or run.arm]
        parts += [
            f"{other.split('.')[-1]} {run.factors[other]}"
            for other in others
            if other in run.factors
        ]
        parts += [f"{run.dim}-d"] if several_sizes else []
        return ", ".join(parts)

    return name


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )


def _draw_lines(
    panels: Sequence[Panel], x_name: str, metric: str, base: float | None
) -> Figure:
    """Draws lines with error bars; legends list them from top to bottom."""
    names = list(
        dict.fromkeys(name for panel in panels for name in panel.lines)
    )
    tall = max(2.6, *(_LINE * len(panel.lines) for panel in panels))
    with styled():
        figure, grid = _grid(panels, [tall] * len(panels), names)
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
            yerr=[_reach(points[place]) for place in own],
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
    points = [point for line in panel.lines.values() for point in line.values()]
    means = [point.mean for point in points]
    span = max(max(means) - min(means), 0.02)
    low = min(point.mean - min(_reach(point), span) for point in points)
    high = max(point.mean + min(_reach(point), span) for point in points)
    edge = max(0.05 * (high - low), 0.005)
    return low - edge, high + edge


def _draw_bars(panels: Sequence[Panel], metric: str) -> Figure:
    """Draws horizontal bars with error bars; numbers stand at the right."""
    names = list(
        dict.fromkeys(name for panel in panels for name in panel.lines)
    )
    heights = [
        0.24 * len(panel.places) * _group_size(panel) + 0.1 for panel in panels
    ]
    labels = [str(place) for panel in panels for place in panel.places]
    with styled():
        figure, grid = _grid(panels, heights, [max(labels, key=len), *names])
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
            row, reach = places.index(place) * size + number, _reach(point)
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


def _grid(
    panels: Sequence[Panel], heights: Sequence[float], names: Sequence[str]
) -> tuple[Figure, list[Axes]]:
    """Makes axes below each other, with titles and a note on error bars."""
    titles = [textwrap.fill(panel.title, 70) for panel in panels]
    rows = sum(5 + title.count("\n") for title in titles) + 2
    figure = Figure(
        figsize=(6 + 0.08 * max(map(len, names)), sum(heights) + _LINE * rows),
        layout="constrained",
    )
    grid = list(
        figure.subplots(len(panels), squeeze=False, height_ratios=heights).flat
    )
    for axes, title in zip(grid, titles, strict=True):
        axes.set_title(title)
    repeated = any(
        point.count > 1
        for panel in panels
        for line in panel.lines.values()
        for point in line.values()
    )
    note = _NOTE if repeated else "one repetition each: no error bars"
    figure.supxlabel(note, x=0.01, ha="left", size=8, color=GRAY)
    return figure, grid


def _reach(point: Summary) -> float:
    """Returns half the length of the interval; zero without an interval."""
    return 0.0 if math.isnan(point.high) else point.high - point.mean
