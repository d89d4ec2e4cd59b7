"""The diagram of average ranks that shows which arms are told apart."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keras_dml.comparison.page.drawing import LINE_HEIGHT, text_width, widest
from keras_dml.comparison.ranks import RankTable
from keras_dml.plotting import COLORS, GRAY, styled
from keras_dml.wording import counted, metric_title

# Inches.
_AXIS_WIDTH = 5.5
_MARGIN = 0.15
_STUB = 0.2
_BAR_GAP = 0.11
_TOP = 1.15
_LEGEND = "bars join arms that are not told apart"


def critical_difference_diagram(ranks: RankTable, metric: str) -> Figure:
    """Draws average ranks on an axis, the best at the left.

    Bars join arms whose average ranks are less than Nemenyi's critical
    difference apart. Where the Friedman test finds no difference at all, one
    bar joins them all.

    Args:
        ranks: What `rank_arms` or `rank_records` found.
        metric: Name of the metric that was ranked.

    Reference:
        Demšar, "Statistical Comparisons of Classifiers over Multiple Data
        Sets", JMLR 2006, figure 1.
    """
    count = len(ranks.arms)
    labels = [
        f"{arm}  {mean:.2f}"
        for arm, mean in zip(ranks.arms, ranks.mean, strict=True)
    ]
    left = (count + 1) // 2
    left_margin = widest(labels[:left]) + _STUB + 2 * _MARGIN
    right_margin = widest(labels[left:]) + _STUB + 2 * _MARGIN
    title = _title(ranks, metric)
    width = max(
        left_margin + _AXIS_WIDTH + right_margin,
        text_width(title, 10) + 2 * _MARGIN,
    )
    bars = _bar_rows(ranks)
    under_bars = _TOP + 0.12 + _BAR_GAP * (1 + max(bars, default=-1)) + 0.12
    height = under_bars + LINE_HEIGHT * (left + bool(bars)) + _MARGIN
    with styled():
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0, 0, 1, 1))
        # Everything is placed in inches from the upper left corner.
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.axis("off")
        start, stop = left_margin, width - right_margin
        scale = (stop - start) / max(count - 1, 1)
        places = [start + (mean - 1) * scale for mean in ranks.mean]
        axes.text(_MARGIN, _MARGIN, title, size=10, va="top")
        if bars:
            bottom = height - _MARGIN
            axes.text(start, bottom, _LEGEND, color=GRAY, va="center")
        _draw_axis(axes, count, start, scale)
        _draw_ruler(axes, ranks, start, scale, stop)
        for (first, last), row in zip(ranks.groups, bars, strict=True):
            depth = _TOP + 0.12 + _BAR_GAP * row
            axes.plot(
                (places[first] - 0.04, places[last] + 0.04),
                (depth, depth),
                color=COLORS[1],
                linewidth=3.5,
                solid_capstyle="butt",
            )
        for number, (label, place) in enumerate(
            zip(labels, places, strict=True)
        ):
            at_left = number < left
            row = number if at_left else count - 1 - number
            end = start - _STUB if at_left else stop + _STUB
            depth = under_bars + LINE_HEIGHT * row
            axes.plot(
                (place, place, end),
                (_TOP, depth, depth),
                color=GRAY,
                linewidth=0.8,
                solid_joinstyle="miter",
            )
            axes.text(
                end + (-0.05 if at_left else 0.05),
                depth,
                label,
                ha="right" if at_left else "left",
                va="center",
            )
    return figure


def _title(ranks: RankTable, metric: str) -> str:
    blocks = counted(ranks.num_blocks, ranks.unit.removesuffix("s"))
    text = f"Average ranks by {metric_title(metric)} in {blocks}, 1 is best"
    if not math.isnan(ranks.friedman_p):
        text += f"; Friedman p = {ranks.friedman_p:.2g}"
    return text


def _bar_rows(ranks: RankTable) -> list[int]:
    """For each group the first row whose bars end before it begins."""
    ends: list[float] = []
    rows = []
    for first, last in ranks.groups:
        free = (
            row
            for row, end in enumerate(ends)
            if end + 0.02 * len(ranks.arms) < ranks.mean[first]
        )
        row = next(free, len(ends))
        ends[row : row + 1] = [ranks.mean[last]]
        rows.append(row)
    return rows


def _draw_axis(axes: Axes, count: int, start: float, scale: float) -> None:
    stop = start + scale * (count - 1)
    axes.plot((start, stop), (_TOP, _TOP), color="black", linewidth=1)
    # Numbers need about a third of an inch.
    step = max(1, math.ceil(0.3 / scale))
    for rank in range(1, count + 1):
        place = start + scale * (rank - 1)
        named = (rank - 1) % step == 0
        length = 0.08 if named else 0.04
        axes.plot(
            (place, place), (_TOP - length, _TOP), color="black", linewidth=1
        )
        if named:
            axes.text(place, _TOP - 0.1, str(rank), ha="center", va="bottom")


def _draw_ruler(
    axes: Axes, ranks: RankTable, start: float, scale: float, stop: float
) -> None:
    length = ranks.critical_difference
    if math.isnan(length):
        text = "one block: no critical difference"
        axes.text(start, 0.6, text, color=GRAY, va="center")
        return
    text = f"critical difference {length:.2f}"
    end = start + length * scale
    if end > stop:
        text += ", wider than the axis"
    axes.text(start, 0.52, text, va="center")
    if end > stop:
        return
    axes.plot((start, end), (0.7, 0.7), color="black", linewidth=1.5)
    for place in (start, end):
        axes.plot((place, place), (0.65, 0.75), color="black", linewidth=1.5)
