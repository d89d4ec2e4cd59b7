"""Means over repetitions, with standard deviations and intervals."""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from scipy import stats

from keras_dml import checks
from keras_dml.comparison.records import (
    Experiment,
    RunRecord,
    by_arm,
    experiment_of,
    grouped,
)

LEVEL = 0.95
# Explains every standard deviation that is shown.
STD_IN_WORDS = "the sample standard deviation (n - 1 in the divisor, ddof 1)"
INTERVAL_IN_WORDS = "the 95 % interval of the mean by Student's t"


@dataclasses.dataclass(frozen=True)
class Summary:
    """A mean of repetitions and its interval.

    Args:
        mean: Float.
        std: Float, the sample standard deviation (`ddof=1`); NaN where
            there are fewer than two repetitions, like `low` and `high`.
        low: Float, lower end of Student's t interval of the mean.
        high: Float, upper end.
        count: Integer, the number of repetitions.
        unit: What was repeated, `"seeds"` or `"folds"`. Defaults to
            `"seeds"`.
        folds: Integer, the largest number of folds that the value of a seed
            averages; `0` without folds, or if the folds are the repetitions.
            Defaults to `0`.
    """

    mean: float
    std: float
    low: float
    high: float
    count: int
    unit: str = "seeds"
    folds: int = 0

    @property
    def reach(self) -> float:
        """Half the length of the interval; zero without an interval."""
        return 0.0 if math.isnan(self.high) else self.high - self.mean


@dataclasses.dataclass(frozen=True)
class Repetitions:
    """Values of arms under the same seeds, or the same folds of one seed.

    Args:
        unit: `"seeds"` or `"folds"`.
        values: Float array `(repetitions, arms)`, sorted by seed or fold.
        folds: Integer, the largest number of folds that the value of a seed
            averages; `0` without folds, or if the folds are the repetitions.
        pairs: Tuple of the pairs of seed and fold that all arms finished.
    """

    unit: str
    values: np.ndarray
    folds: int
    pairs: tuple[tuple[int, int | None], ...]


def summarize(values: Any, unit: str = "seeds", folds: int = 0) -> Summary:
    """Computes the mean, sample standard deviation and Student's t interval.

    `mean ± t * std / sqrt(n)`, with `t` the quantile of `n - 1` degrees of
    freedom.

    Args:
        values: Float array `(n,)`, one value per repetition.
        unit: What was repeated. Defaults to `"seeds"`.
        folds: Integer, the number of folds that each value averages. Defaults
            to `0`.

    Raises:
        ValueError: If there are no values.

    Example:

    >>> summarize([0.60, 0.61, 0.62]).mean
    0.61
    """
    values = np.asarray(values, np.float64)
    flat = values.ndim == 1 and len(values) > 0
    wanted = "a list of at least one number"
    checks.require(flat, "values", wanted, values.tolist())
    values = values.tolist()
    mean, count = statistics.fmean(values), len(values)
    if count < 2:
        nan = math.nan
        return Summary(mean, nan, nan, nan, count, unit, folds)
    std = statistics.stdev(values)
    quantile = float(stats.t.ppf(0.5 + LEVEL / 2, count - 1))
    reach = quantile * std / math.sqrt(count)
    return Summary(mean, std, mean - reach, mean + reach, count, unit, folds)


def metric_of(record: RunRecord, metric: str) -> float | None:
    """Returns a run's value after training, or `None` if it has none."""
    value = record.after.get(metric) if record.status == "done" else None
    return None if value is None or not math.isfinite(value) else float(value)


def paired_repetitions(
    arms: Mapping[str, Iterable[RunRecord]], metric: str
) -> Repetitions:
    """Returns the values of arms for the seeds that all arms finished.

    The repetitions are the seeds: folds of a seed that all arms finished are
    averaged first. With one seed and several folds, the repetitions are the
    folds.

    Args:
        arms: Dict of arms to their runs in one experiment.
        metric: Name of a metric.
    """
    found = [_by_seed_and_fold(runs, metric) for runs in arms.values()]
    common = set(found[0]).intersection(*found) if found else set()
    pairs = sorted(common, key=lambda pair: (pair[0], pair[1] or 0))
    seeds = sorted({seed for seed, _ in pairs})
    if len(seeds) == 1 and len(pairs) > 1:
        unit, folds = "folds", 0
        repeated = [[pair] for pair in pairs]
    else:
        unit = "seeds"
        repeated = [[p for p in pairs if p[0] == seed] for seed in seeds]
        has_folds = any(fold is not None for _, fold in pairs)
        folds = max(map(len, repeated)) if has_folds else 0
    rows = [
        [statistics.fmean(values[pair] for pair in own) for values in found]
        for own in repeated
    ]
    values = np.array(rows).reshape(len(rows), len(found))
    return Repetitions(unit, values, folds, tuple(pairs))


def summarize_runs(records: Iterable[RunRecord], metric: str) -> Summary | None:
    """Summarizes one arm's runs; returns `None` if none is finished.

    Args:
        records: Runs of one arm in one experiment.
        metric: Name of a metric.
    """
    found = paired_repetitions({"": records}, metric)
    if not found.pairs:
        return None
    return summarize(found.values[:, 0], unit=found.unit, folds=found.folds)


def summarize_arms(
    records: Iterable[RunRecord], metric: str
) -> dict[Experiment, dict[str, Summary]]:
    """Summarizes every arm with a finished run in every experiment.

    Args:
        records: Runs of any state.
        metric: Name of a metric, such as `"map@r"`.
    """
    summaries: dict[Experiment, dict[str, Summary]] = {}
    for experiment, runs in grouped(records, experiment_of).items():
        summaries[experiment] = {}
        for arm, own in by_arm(runs).items():
            summary = summarize_runs(own, metric)
            if summary is not None:
                summaries[experiment][arm] = summary
    return summaries


def _by_seed_and_fold(
    records: Iterable[RunRecord], metric: str
) -> dict[tuple[int, int | None], float]:
    values = {}
    for record in records:
        value = metric_of(record, metric)
        if value is not None:
            values[record.seed, record.fold] = value
    return values
