"""The diagram of average ranks that shows which arms differ significantly."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keras_dml.comparison.ranks import RankTable
from keras_dml.plotting import COLORS, GRAY, styled
from keras_dml.wording import counted, metric_title

# Heights, in lines of text below the axis of ranks.
_BARS, _BAR_GAP = 0.7, 0.65
_RULER, _TOP = -2.8, -4.5


def critical_difference_diagram(ranks: RankTable, metric: str) -> Figure:
    """Draws average ranks on an axis, the best at the left.

    Bars join arms whose average ranks are less than Nemenyi's critical
    difference apart. If the Friedman test finds no difference at all, one bar
    joins all arms.

    Args:
        ranks: The result of `rank_arms` or `rank_records`.
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
    bars = _bar_rows(ranks)
    first_label = _BARS + _BAR_GAP * (1 + max(bars, default=-1)) + 0.7
    bottom = first_label + left + bool(bars)
    letters = sum(
        max(map(len, side), default=0)
        for side in (labels[:left], labels[left:])
    )
    # One hundredth of the axis.
    unit = max(count - 1, 1) / 100
    with styled():
        figure = Figure(
            figsize=(6.5 + 0.07 * letters, 0.17 * (bottom - _TOP) + 0.5),
            layout="constrained",
        )
        figure.suptitle(_title(ranks, metric), x=0.01, ha="left", size=10)
        axes = figure.subplots()
        axes.set(xlim=(1, max(count, 2)), ylim=(bottom, _TOP))
        axes.axis("off")
        _draw_axis(axes, count)
        _draw_ruler(axes, ranks)
        for (first, last), row in zip(ranks.groups, bars, strict=True):
            axes.plot(
                (ranks.mean[first] - unit, ranks.mean[last] + unit),
                [_BARS + _BAR_GAP * row] * 2,
                color=COLORS[1],
                linewidth=3.5,
                solid_capstyle="butt",
                clip_on=False,
            )
        for number, (label, mean) in enumerate(
            zip(labels, ranks.mean, strict=True)
        ):
            at_left = number < left
            depth = first_label + (number if at_left else count - 1 - number)
            end = 1 - 4 * unit if at_left else count + 4 * unit
            axes.plot(
                (mean, mean, end),
                (0, depth, depth),
                color=GRAY,
                linewidth=0.8,
                solid_joinstyle="miter",
                clip_on=False,
            )
            axes.text(
                end - unit if at_left else end + unit,
                depth,
                label,
                ha="right" if at_left else "left",
                va="center",
            )
        if bars:
            text = "bars join arms that do not differ significantly"
            axes.text(1, bottom, text, color=GRAY, va="center")
    return figure


def _title(ranks: RankTable, metric: str) -> str:
    blocks = counted(ranks.num_blocks, ranks.unit.removesuffix("s"))
    text = f"Average ranks by {metric_title(metric)} in {blocks}, 1 is best"
    if not math.isnan(ranks.friedman_p):
        text += f"; Friedman p = {ranks.friedman_p:.2g}"
    return text


def _bar_rows(ranks: RankTable) -> list[int]:
    """Returns for each group the first row with room for its bar."""
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


def _draw_axis(axes: Axes, count: int) -> None:
    black: dict = {"color": "black", "linewidth": 1, "clip_on": False}
    axes.plot((1, count), (0, 0), **black)
    # The axis has room for 18 numbers.
    step = math.ceil(count / 18)
    for rank in range(1, count + 1):
        named = (rank - 1) % step == 0
        axes.plot((rank, rank), (-0.5 if named else -0.25, 0), **black)
        if named:
            axes.text(rank, -0.6, str(rank), ha="center", va="bottom")


def _draw_ruler(axes: Axes, ranks: RankTable) -> None:
    length, count = ranks.critical_difference, len(ranks.arms)
    if math.isnan(length):
        text = "one block: no critical difference"
        axes.text(1, _RULER - 1, text, color=GRAY, va="center")
        return
    text = f"critical difference {length:.2f}"
    fits = 1 + length <= count
    if not fits:
        text += ", wider than the axis"
    axes.text(1, _RULER - 1, text, va="center")
    if fits:
        style: dict = {"color": "black", "linewidth": 1.5, "clip_on": False}
        axes.plot((1, 1 + length), (_RULER, _RULER), **style)
        for place in (1, 1 + length):
            axes.plot((place, place), (_RULER - 0.3, _RULER + 0.3), **style)
