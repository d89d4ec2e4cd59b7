"""Draws a tuning: its history, its settings and their importances."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from keras_dml.config.tuning_section import RangeConfig, TuningConfig
from keras_dml.plotting import COLORS, GRAY, save_figure, styled
from keras_dml.tuning.trials import Trial, TuningResult
from keras_dml.wording import metric_title, percent

COMPLETE, BEST, PRUNED = COLORS[0], COLORS[1], COLORS[4]
# The state of a trial, its name in the legend, its color and its marker.
_MARKS = (
    ("complete", "complete", COMPLETE, "o"),
    ("pruned", "stopped early", PRUNED, "v"),
)
_COLUMNS = 3


def draw_tuning(
    result: TuningResult, section: TuningConfig, folder: Path
) -> None:
    """Draws `history`, `slices` and, if known, `importances`.

    Args:
        result: The result.
        section: The `tuning` section.
        folder: The folder of the figures, each as PNG and as SVG.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with styled():
        save_figure(_history(result), folder / "history")
        save_figure(_slices(result, section), folder / "slices")
        if result.importances:
            save_figure(_importances(result), folder / "importances")


def best_so_far(trials: Sequence[Trial]) -> np.ndarray:
    """Returns for each trial the best value of complete trials up to it.

    The values before the first complete trial are NaN.

    Args:
        trials: The trials by number.

    Returns:
        Float array `(trials,)`.
    """
    values = [x.value if x.state == "complete" else None for x in trials]
    return np.fmax.accumulate(np.asarray(values, dtype=float))


def _history(result: TuningResult) -> Figure:
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes: Any = figure.subplots()
    _scatter(axes, result.trials, lambda trial: trial.number, s=24)
    failed = [x.number for x in result.trials if x.state == "failed"]
    if failed:
        axes.scatter(
            failed,
            np.zeros(len(failed)),
            transform=axes.get_xaxis_transform(),
            color=GRAY,
            marker="|",
            s=60,
            clip_on=False,
            label="failed",
        )
    axes.step(
        [trial.number for trial in result.trials],
        best_so_far(result.trials),
        where="post",
        color=BEST,
        label="best so far",
    )
    axes.set_xlabel("trial")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylabel(_value_label(result))
    _legend(figure, axes)
    return figure


def _slices(result: TuningResult, section: TuningConfig) -> Figure:
    keys = list(section.space)
    columns = min(len(keys), _COLUMNS)
    rows = -(-len(keys) // columns)
    figure = Figure(
        figsize=(max(4.0, 3.2 * columns), 2.8 * rows), layout="constrained"
    )
    grid = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for axes in grid.flat[len(keys) :]:
        axes.set_axis_off()
    for number, key in enumerate(keys):
        _slice(grid.flat[number], result, key, section.space[key])
    for row in grid:
        row[0].set_ylabel(_value_label(result))
    _legend(figure, grid.flat[0])
    return figure


def _slice(
    axes: Any, result: TuningResult, key: str, values: RangeConfig | list[Any]
) -> None:
    def place(trial: Trial) -> Any:
        """Returns the place on the axis: the index in a list, or the value."""
        value = trial.parameters[key]
        return values.index(value) if isinstance(values, list) else value

    _scatter(axes, result.trials, place, s=20, alpha=0.8)
    axes.scatter(
        [place(result.best)],
        [result.best.value],
        facecolors="none",
        edgecolors=BEST,
        linewidths=1.5,
        s=90,
        label="best",
    )
    axes.set_xlabel(key)
    if isinstance(values, list):
        names = [str(value) for value in values]
        turned = sum(map(len, names)) > 24
        axes.set_xticks(
            range(len(values)),
            names,
            rotation=30 if turned else 0,
            ha="right" if turned else "center",
        )
        axes.set_xlim(-0.5, len(values) - 0.5)
        return
    # Show the whole range: a best value at one end calls for a wider range.
    low, high = values.low, values.high
    margin = (high - low) * 0.05
    limits = (low - margin, high + margin)
    if values.log:
        margin = (high / low) ** 0.05
        limits = (low / margin, high * margin)
        axes.set_xscale("log")
    axes.set_xlim(limits)


def _importances(result: TuningResult) -> Figure:
    keys = list(result.importances)[::-1]
    shares = [result.importances[key] for key in keys]
    figure = Figure(figsize=(7, 1.1 + 0.32 * len(keys)), layout="constrained")
    axes = figure.subplots()
    bars = axes.barh(keys, shares, color=COMPLETE, height=0.6)
    axes.bar_label(bars, [percent(share) for share in shares], padding=3)
    axes.set_xlim(0, max(1.0, *shares) * 1.08)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(
        f"share of the variance of {metric_title(result.metric)} "
        f"({result.count('complete')} complete trials, fANOVA)"
    )
    return figure


def _legend(figure: Figure, axes: Any) -> None:
    """Draws the legend above all axes, where it hides no point."""
    marks, names = axes.get_legend_handles_labels()
    figure.legend(
        marks, names, loc="outside upper left", ncols=len(names), frameon=False
    )


def _scatter(
    axes: Any,
    trials: Sequence[Trial],
    place: Callable[[Trial], Any],
    **style: Any,
) -> None:
    """Draws the values of trials, each state with a mark of its own."""
    for state, label, color, marker in _MARKS:
        points = [
            (place(trial), trial.value)
            for trial in trials
            if trial.state == state and trial.value is not None
        ]
        if points:
            axes.scatter(
                *np.transpose(points),
                color=color,
                marker=marker,
                label=label,
                **style,
            )


def _value_label(result: TuningResult) -> str:
    return f"{metric_title(result.metric)}, validation classes"
