"""Draws quality by embedding size, by setting and by arm."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure

from keras_dml.comparison.page.bars import draw_bars
from keras_dml.comparison.page.lines import draw_lines
from keras_dml.comparison.page.panels import Panel, make_panel
from keras_dml.comparison.records import (
    RunRecord,
    grouped,
    network_of,
    trained_runs,
)

Namer = Callable[[RunRecord], str]

# An axis that spans a larger factor is logarithmic.
LARGE_SPAN = 20


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
    runs = trained_runs(records)
    panels = _panels(runs, metric, lambda own: _arm, lambda run: run.dim)
    return draw_lines(panels, "embedding size", metric, 2) if panels else None


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
        titled = [Panel(f"{title}: {factor}", own) for title, own in panels]
        return draw_bars(titled, metric)
    values = [place for panel in panels for place in panel.places]
    wide = min(values) > 0 and max(values) > LARGE_SPAN * min(values)
    return draw_lines(panels, factor, metric, 10 if wide else None)


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
            title = network.title + (f", {dim}-d" if len(sizes) > 1 else "")
            panel = make_panel(title, own, metric, lambda run: "", _arm)
            if panel.lines:
                means = panel.lines[""].items()
                best = dict(sorted(means, key=lambda item: -item[1].mean))
                panels.append(Panel(title, {"": best}))
    return draw_bars(panels, metric) if panels else None


def _arm(run: RunRecord) -> str:
    return run.arm


def _panels(
    records: Iterable[RunRecord],
    metric: str,
    namer: Callable[[list[RunRecord]], Namer],
    place: Callable[[RunRecord], Any],
) -> list[Panel]:
    """Returns the panels of networks with at least two places on the axis."""
    panels = [
        make_panel(network.title, runs, metric, namer(runs), place)
        for network, runs in grouped(records, network_of).items()
    ]
    return [panel for panel in panels if len(panel.places) > 1]


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
