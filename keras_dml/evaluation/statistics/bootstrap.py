"""Estimates how much metrics vary between samples of queries.

The bootstrap draws queries, or whole classes of queries, with replacement; the
gallery stays the same. Queries of one class share their positives and so are
not independent. Drawing classes gives wider intervals: use it for claims about
classes that are not in the test set. A query with several labels counts in each
of its classes, in equal parts.

Resampled means of `n` units vary less than means of new ones. So they are
moved away from the observed mean by `t / z sqrt(n / (n - 1))`, with the
quantiles of Student's t of `n - 1` degrees of freedom and of the normal
distribution: 1.04 for 50 units, 1.58 for 5.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import stats

from keras_dml.brief import Brief
from keras_dml.checks import in_interval, of_shape, positive_integer, require
from keras_dml.errors import UsageError
from keras_dml.evaluation.blocks import row_blocks
from keras_dml.evaluation.labels import as_label_sets

# How many draws are counted at a time: 64 MiB of integers.
DRAWS_AT_A_TIME = 2**23


@dataclasses.dataclass(frozen=True, repr=False)
class Interval(Brief):
    """A mean over queries and its bootstrap interval.

    Args:
        value: Float, the mean.
        low: Float, lower end of the interval.
        high: Float, upper end of the interval.
        level: Float, the share of resampled means inside the interval.
        unit: `"queries"` or `"classes"`, what was drawn.
        num_resamples: Integer.
    """

    value: float
    low: float
    high: float
    level: float
    unit: str
    num_resamples: int


@dataclasses.dataclass(frozen=True, repr=False)
class Difference(Brief):
    """The difference between two results on the same queries.

    Args:
        difference: Float, mean of the first minus mean of the second.
        low: Float, lower end of the bootstrap interval.
        high: Float, upper end of the interval.
        p_value: Float, the two-sided p-value, at least
            `2 / (num_resamples + 1)`. It is below `1 - level` only if the
            interval excludes zero; if it does, the p-value is below
            `1 - level + 4 / num_resamples`.
        level: Float, the share of resampled differences inside the interval.
        unit: `"queries"` or `"classes"`, what was drawn.
        num_resamples: Integer.
    """

    difference: float
    low: float
    high: float
    p_value: float
    level: float
    unit: str
    num_resamples: int


def bootstrap_intervals(
    per_query: Mapping[str, Any],
    classes: Any = None,
    level: float = 0.95,
    num_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Interval]:
    """Computes percentile bootstrap intervals of means over queries.

    Args:
        per_query: Dict of metrics to float arrays `(num_queries,)`, NaN for
            lone queries, which are left out.
        classes: The class of each query, or its labels in any form that
            `as_label_sets` reads, to draw whole classes; or `None` to draw
            queries. Defaults to `None`.
        level: Float in (0, 1). Defaults to `0.95`.
        num_resamples: Integer. Defaults to `1000`.
        seed: Integer. Defaults to `0`.

    Returns:
        Dict of the metrics to `Interval`.

    Raises:
        UsageError: If there is no metric, an argument is out of range, or
            fewer than two queries, or classes, have a positive.

    Example:

    >>> intervals = bootstrap_intervals({"recall@1": [1.0, 0.0, 1.0, 1.0]})
    >>> intervals["recall@1"].value
    0.75

    Reference:
        Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
        chapter 13.
    """
    in_interval("level", level, 0, 1, advice="0.95 is usual.")
    given = isinstance(per_query, Mapping) and bool(per_query)
    wanted, advice = "a dict of at least one metric", "Name what to average."
    require(given, "per_query", wanted, per_query, advice)
    columns = [np.asarray(one, np.float64) for one in per_query.values()]
    axes: tuple[str | int, ...] = ("num_queries",)
    for one in columns:
        axes = of_shape("per_query", one, *axes).shape
    values = np.stack(columns, axis=1)
    _check_lone(values)
    center = np.nanmean(values, axis=0)
    means, units = _resampled_means(values, classes, num_resamples, seed)
    means = _widened(means, center, units, level)
    if np.nanmin(values) >= 0 and np.nanmax(values) <= 1:
        means = means.clip(0, 1)
    tail = (1 - level) / 2
    low, high = np.quantile(means, [tail, 1 - tail], axis=0).tolist()
    center = center.tolist()
    settings = (level, _unit(classes), num_resamples)
    return {
        name: Interval(center[i], low[i], high[i], *settings)
        for i, name in enumerate(per_query)
    }


def paired_bootstrap(
    first: Any,
    second: Any,
    classes: Any = None,
    level: float = 0.95,
    num_resamples: int = 1000,
    seed: int = 0,
    widen: bool = True,
) -> Difference:
    """Compares two results on the same queries.

    Every resample takes the same queries from both results, so that queries
    which are hard for both do not widen the interval.

    Args:
        first: Float array `(num_queries,)`, values of a metric, NaN for lone
            queries.
        second: Float array `(num_queries,)`, of the same queries.
        classes: The class of each query, or its labels in any form that
            `as_label_sets` reads, to draw whole classes; or `None` to draw
            queries. Defaults to `None`.
        level: Float in (0, 1). Defaults to `0.95`.
        num_resamples: Integer. Defaults to `1000`.
        seed: Integer. Defaults to `0`.
        widen: Boolean, whether the interval is as wide as Student's t asks of
            few units; `False` has the plain percentiles. Defaults to `True`.

    Returns:
        `Difference`, first minus second.

    Raises:
        UsageError: If the results are of different queries, an argument is
            out of range, or fewer than two queries, or classes, have a
            positive.

    Example:

    >>> paired_bootstrap([1.0, 1.0, 0.0], [0.0, 1.0, 0.0]).difference
    0.3333333333333333

    Reference:
        - Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
          chapters 13 and 15.
        - Hesterberg, "What Teachers Should Know About the Bootstrap", 2015,
          section 5.3 (intervals of small samples are too narrow).
    """
    in_interval("level", level, 0, 1, advice="0.95 is usual.")
    first, second = np.asarray(first, float), np.asarray(second, float)
    if first.shape != second.shape:
        raise UsageError(
            "`first` and `second` must be values of the same queries. "
            f"Received: shapes {first.shape} and {second.shape}. Evaluate "
            "both on the same images."
        )
    advice = "Compare one metric at a time."
    of_shape("first", first, "num_queries", advice=advice)
    _check_lone(np.stack([first, second], axis=1))
    apart = (first - second)[:, None]
    difference = np.nanmean(apart, axis=0)
    differences, units = _resampled_means(apart, classes, num_resamples, seed)
    if widen:
        differences = _widened(differences, difference, units, level)
    tail = (1 - level) / 2
    low, high = np.quantile(differences, [tail, 1 - tail])
    below = np.count_nonzero(differences <= 0)
    above = np.count_nonzero(differences >= 0)
    p_value = 2 * (1 + min(below, above)) / (num_resamples + 1)
    return Difference(
        float(difference[0]),
        float(low),
        float(high),
        float(min(p_value, 1.0)),
        level,
        _unit(classes),
        num_resamples,
    )


def _resampled_means(
    values: np.ndarray, classes: Any, num_resamples: int, seed: int
) -> tuple[np.ndarray, int]:
    """Resamples values `(num_queries, metrics)`.

    Returns:
        Float64 array `(num_resamples, metrics)` of means, and the number of
        units that were drawn from.
    """
    positive_integer("num_resamples", num_resamples)
    kept = ~np.isnan(values).any(axis=1)
    totals, counts = values[kept], np.ones(int(kept.sum()))
    if classes is not None:
        sets = as_label_sets(classes, len(values), "classes")
        shares = 1 / np.bincount(sets.owners)[sets.owners]
        there = kept[sets.owners]
        owners, shares = sets.owners[there], shares[there]
        _, codes = np.unique(sets.values[there], return_inverse=True)
        counts = np.bincount(codes, shares).astype(np.float64)
        totals = np.stack(
            [np.bincount(codes, shares * own[owners]) for own in values.T],
            axis=1,
        )
    if len(counts) < 2:
        raise UsageError(
            f"A bootstrap needs at least two {_unit(classes)} with a "
            f"positive. Received: {len(counts)}. Evaluate more images."
        )
    generator = np.random.default_rng(seed)
    means = np.empty((num_resamples, values.shape[1]))
    for block in row_blocks(num_resamples, DRAWS_AT_A_TIME // len(counts)):
        weights = _draw(generator, block.stop - block.start, len(counts))
        means[block] = (weights @ totals) / (weights @ counts)[:, None]
    return means, len(counts)


def _widened(
    means: np.ndarray, center: np.ndarray, units: int, level: float
) -> np.ndarray:
    """Moves resampled means away from the mean, see the head of this file."""
    upper = (1 + level) / 2
    ratio = stats.t.ppf(upper, units - 1) / stats.norm.ppf(upper)
    return center + ratio * np.sqrt(units / (units - 1)) * (means - center)


def _draw(
    generator: np.random.Generator, num_resamples: int, num_units: int
) -> np.ndarray:
    """Counts draws of each unit, float64 `(num_resamples, num_units)`."""
    draws = generator.integers(num_units, size=(num_resamples, num_units))
    draws += num_units * np.arange(num_resamples)[:, None]
    counts = np.bincount(draws.ravel(), minlength=draws.size)
    return counts.reshape(draws.shape).astype(np.float64)


def _unit(classes: Any) -> str:
    return "queries" if classes is None else "classes"


def _check_lone(values: np.ndarray) -> None:
    lone = np.isnan(values)
    if (lone.any(axis=1) != lone.all(axis=1)).any():
        raise UsageError(
            "All values must be NaN for the same queries, the lone ones. "
            "Received: a query with a value of one metric or result and "
            "without another. Compare results on one gallery."
        )
