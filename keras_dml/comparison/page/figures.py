"""Figures of quality: against embedding size, settings, and arm by arm."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.figure import Figure

from keras_dml.comparison.page.bar_figure import draw_bars
from keras_dml.comparison.page.line_figure import draw_lines
from keras_dml.comparison.page.panels import Panel, places_of
from keras_dml.comparison.records import (
    RunRecord,
    by_arm,
    grouped,
    network_of,
    trained_runs,
)
from keras_dml.comparison.summary import (
    Summary,
    summarize_runs,
)
from keras_dml.wording import metric_title

# An axis that spans more than this is logarithmic.
LARGE_SPAN = 20


def quality_by_size(records: Iterable[RunRecord], metric: str) -> Figure | None:
    """Draws a metric against the embedding size, one line an arm.

    Error bars are the 95 % intervals of the means. Each data set, network and
    weights has a panel of its own.

    Args:
        records: Runs of any state.
        metric: Name of a metric.

    Returns:
        The figure, or `None` where no panel has two sizes.
    """
    panels = []
    for network, runs in grouped(trained_runs(records), network_of).items():
        lines = _lines(runs, metric, lambda run: run.arm, lambda run: run.dim)
        if len(places_of([Panel("", lines)])) > 1:
            panels.append(Panel(network.title, lines))
    if not panels:
        return None
    title = metric_title(metric)
    return draw_lines(panels, "embedding size", title, base=2)


def swept_factors(records: Iterable[RunRecord]) -> list[str]:
    """Settings that have two values or more among the runs, in order."""
    values: dict[str, set[str]] = {}
    for record in records:
        for factor, value in record.factors.items():
            values.setdefault(factor, set()).add(str(value))
    return [factor for factor, found in values.items() if len(found) > 1]


def quality_by_factor(
    records: Iterable[RunRecord], metric: str, factor: str
) -> Figure | None:
    """Draws a metric against a swept setting.

    Numbers are an axis, which is logarithmic where they are positive and
    span more than a factor of 20; other values are bars. What else differs,
    the embedding size and other settings, is a line of its own.

    Args:
        records: Runs of any state.
        metric: Name of a metric.
        factor: Dotted key of a setting, one of `swept_factors`.

    Returns:
        The figure, or `None` where no panel has two values.
    """
    runs = [record for record in records if factor in record.factors]
    numeric = all(_is_number(run.factors[factor]) for run in runs)

    def place(run: RunRecord) -> Any:
        value = run.factors[factor]
        return float(value) if numeric else str(value)

    panels = []
    for network, own in grouped(runs, network_of).items():
        lines = _lines(own, metric, _line_namer(own, factor), place)
        if len(places_of([Panel("", lines)])) > 1:
            panels.append(Panel(network.title, lines))
    if not panels:
        return None
    title = metric_title(metric)
    if not numeric:
        return draw_bars(
            [Panel(f"{name}: {factor}", lines) for name, lines in panels],
            title,
        )
    values = places_of(panels)
    wide = min(values) > 0 and max(values) > LARGE_SPAN * min(values)
    return draw_lines(panels, factor, title, base=10 if wide else None)


def quality_by_arm(records: Iterable[RunRecord], metric: str) -> Figure | None:
    """Draws every arm's mean and interval, the best at the top.

    Args:
        records: Runs of any state.
        metric: Name of a metric.

    Returns:
        The figure, or `None` where no run is finished.
    """
    panels = []
    for network, runs in grouped(records, network_of).items():
        several = len({run.dim for run in runs}) > 1
        for dim, own in sorted(grouped(runs, lambda run: run.dim).items()):
            means = {
                arm: summarize_runs(arm_runs, metric)
                for arm, arm_runs in by_arm(own).items()
            }
            found = {arm: mean for arm, mean in means.items() if mean}
            best = sorted(found, key=lambda arm: -found[arm].mean)
            if best:
                size = f", {dim}-d" if several else ""
                title = network.title + size
                line = {arm: found[arm] for arm in best}
                panels.append(Panel(title, {"": line}))
    if not panels:
        return None
    return draw_bars(panels, metric_title(metric))


def _lines(
    runs: Sequence[RunRecord], metric: str, name: Any, place: Any
) -> dict[str, dict[Any, Summary]]:
    """Summaries by the names of lines and by the places on them."""
    lines: dict[str, dict[Any, Summary]] = {}
    for line, own in grouped(runs, name).items():
        found = {
            value: summarize_runs(there, metric)
            for value, there in grouped(own, place).items()
        }
        points = {value: mean for value, mean in found.items() if mean}
        if points:
            lines[line] = points
    return lines


def _line_namer(runs: Sequence[RunRecord], factor: str) -> Any:
    """What tells the runs apart beside one setting, in words."""
    others = [name for name in swept_factors(runs) if name != factor]
    several_dims = len({run.dim for run in runs}) > 1

    def name(run: RunRecord) -> str:
        parts = [run.line or run.arm]
        parts += [
            f"{other.split('.')[-1]} {run.factors[other]}"
            for other in others
            if other in run.factors
        ]
        parts += [f"{run.dim}-d"] if several_dims else []
        return ", ".join(parts)

    return name


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    )
