"""Retrieval metrics: one value for each query, and their mean.

Every function takes `PositiveRanks` and returns a float64 array
`(num_queries,)` with values in [0, 1]. Queries without a positive are lone:
their value is NaN, and `mean_over_queries` leaves them out. In the formulas
`ranks` are the ranks of the `R` positives of one query, in ascending order
and counted from 1.
"""

from typing import Any

import numpy as np

from keras_dml.checks import positive_integer
from keras_dml.errors import UsageError
from keras_dml.evaluation.metrics.positive_ranks import PositiveRanks


def recall_at_k(positive_ranks: PositiveRanks, k: int) -> np.ndarray:
    """Returns whether any positive is among the `k` nearest references.

    `1[min(ranks) <= k]`. This is the Recall@K of the metric-learning papers;
    at `k = 1` it equals precision.

    Args:
        positive_ranks: `PositiveRanks`.
        k: Integer, how many of the nearest references count. It may exceed
            the number of references.

    Returns:
        Float64 array `(num_queries,)` of zeros and ones, NaN for lone
        queries.

    Example:

    >>> recall_at_k(PositiveRanks([3, 4], [0, 2], 5), k=3)
    array([1.])
    """
    hits = _hits_at_k(positive_ranks, k, "recall_at_k")
    return _hide_lone(positive_ranks, (hits > 0).astype(np.float64))


def precision_at_k(positive_ranks: PositiveRanks, k: int) -> np.ndarray:
    """Computes the share of positives among the `k` nearest references.

    `#{ranks <= k} / k`.

    Args:
        positive_ranks: `PositiveRanks`.
        k: Integer, how many of the nearest references count.

    Returns:
        Float64 array `(num_queries,)`, NaN for lone queries.
    """
    hits = _hits_at_k(positive_ranks, k, "precision_at_k")
    return _hide_lone(positive_ranks, hits / k)


def r_precision(positive_ranks: PositiveRanks) -> np.ndarray:
    """Computes the share of positives among the `R` nearest references.

    `#{ranks <= R} / R`, where `R` is the number of positives.

    Args:
        positive_ranks: `PositiveRanks`.

    Returns:
        Float64 array `(num_queries,)`, NaN for lone queries.

    Reference:
        Musgrave, Belongie and Lim, "A Metric Learning Reality Check", 2020.
    """
    counts, within = _within_r(positive_ranks, "r_precision")
    hits = _sum_by_query(positive_ranks, within)
    return _hide_lone(positive_ranks, hits / np.maximum(counts, 1))


def map_at_r(positive_ranks: PositiveRanks) -> np.ndarray:
    """Computes average precision over the `R` nearest; its mean is MAP@R.

    `1/R * sum over ranks[i] <= R of (i / ranks[i])`, `i` counted from 1: the
    precision at each positive within the first `R` ranks, and zero for the
    others.

    Args:
        positive_ranks: `PositiveRanks`.

    Returns:
        Float64 array `(num_queries,)`, NaN for lone queries.

    Example:

    The positives have the ranks 1, 3 and 5. `R` is 3, so rank 5 does not
    count, and MAP@R is `(1/1 + 2/3) / 3 = 5/9`.

    >>> map_at_r(PositiveRanks([1, 3, 5], [0, 3], 6))
    array([0.55555556])

    Reference:
        Musgrave, Belongie and Lim, "A Metric Learning Reality Check", 2020.
    """
    counts, within = _within_r(positive_ranks, "map_at_r")
    return _average_precision(positive_ranks, within, counts)


def map_at_k(positive_ranks: PositiveRanks, k: int) -> np.ndarray:
    """Computes average precision over the `k` nearest; its mean is MAP@K.

    `1/min(R, k) * sum over ranks[i] <= k of (i / ranks[i])`. The sum has at
    most `min(R, k)` terms of at most 1, so a perfect list of any length
    scores 1. Other definitions divide by `R`, which gives smaller values, or
    by the number of positives found, which gives larger ones.

    Args:
        positive_ranks: `PositiveRanks`.
        k: Integer, how many of the nearest references count.

    Returns:
        Float64 array `(num_queries,)`, NaN for lone queries.

    Example:

    The positives have the ranks 1, 3 and 5. Only the first is among the two
    nearest references, so MAP@2 is `(1/1) / 2`.

    >>> map_at_k(PositiveRanks([1, 3, 5], [0, 3], 6), k=2)
    array([0.5])
    """
    _require(positive_ranks, positive_integer("k", k), "map_at_k")
    most = np.minimum(np.asarray(positive_ranks.num_positives), k)
    return _average_precision(positive_ranks, positive_ranks.ranks <= k, most)


def average_precision(positive_ranks: PositiveRanks) -> np.ndarray:
    """Averages the precision at each positive over all positives.

    `1/R * sum of (i / ranks[i])` over the whole gallery.

    Args:
        positive_ranks: `PositiveRanks` of the whole gallery, not cut at a
            `max_rank`.

    Returns:
        Float64 array `(num_queries,)`, NaN for lone queries.
    """
    _require(positive_ranks, positive_ranks.num_references, "average_precision")
    counts = np.diff(positive_ranks.offsets)
    return _average_precision(positive_ranks, True, counts)


def reciprocal_rank(positive_ranks: PositiveRanks) -> np.ndarray:
    """Computes 1 over the rank of the nearest positive; its mean is MRR.

    `1 / min(ranks)`.

    Args:
        positive_ranks: `PositiveRanks` of the whole gallery, not cut at a
            `max_rank`.

    Returns:
        Float64 array `(num_queries,)`, NaN for lone queries.
    """
    _require(positive_ranks, positive_ranks.num_references, "reciprocal_rank")
    values = np.full(positive_ranks.num_queries, np.nan)
    found = ~positive_ranks.lone
    first = positive_ranks.offsets[:-1][found]
    values[found] = 1.0 / positive_ranks.ranks[first]
    return values


def mean_over_queries(values: np.ndarray) -> float:
    """Averages a metric over the queries that have a positive.

    Args:
        values: Float64 array `(num_queries,)`, NaN for lone queries.

    Returns:
        Float, the mean of all other values.

    Raises:
        UsageError: If every query is lone.
    """
    kept = values[~np.isnan(values)]
    if len(kept) == 0:
        raise UsageError(
            "A metric needs a query with a positive reference: another image "
            f"of its class in the gallery. Received: {len(values)} queries, "
            "all without one. Give two images or more of some class, and "
            "check that queries and references share their labels."
        )
    return float(kept.mean())


def _within_r(
    positive_ranks: PositiveRanks, name: str
) -> tuple[np.ndarray, np.ndarray]:
    counts = np.asarray(positive_ranks.num_positives)
    _require(positive_ranks, int(counts.max(initial=1)), name)
    return counts, positive_ranks.ranks <= counts[positive_ranks.owners]


def _hits_at_k(positive_ranks: PositiveRanks, k: int, name: str) -> np.ndarray:
    _require(positive_ranks, positive_integer("k", k), name)
    return _sum_by_query(positive_ranks, positive_ranks.ranks <= k)


def _average_precision(
    positive_ranks: PositiveRanks, within: Any, most: np.ndarray
) -> np.ndarray:
    """Sums the precision at the positives within, and divides by `most`."""
    starts = positive_ranks.offsets[positive_ranks.owners]
    found = np.arange(len(positive_ranks.ranks)) - starts + 1
    precision = np.where(within, found / positive_ranks.ranks, 0.0)
    total = _sum_by_query(positive_ranks, precision)
    return _hide_lone(positive_ranks, total / np.maximum(most, 1))


def _sum_by_query(
    positive_ranks: PositiveRanks, values: np.ndarray
) -> np.ndarray:
    # Adds the values of a query in order: the size of blocks changes no bit.
    return np.bincount(
        positive_ranks.owners, values, minlength=positive_ranks.num_queries
    )


def _hide_lone(positive_ranks: PositiveRanks, values: np.ndarray) -> np.ndarray:
    return np.where(positive_ranks.lone, np.nan, values)


def _require(positive_ranks: PositiveRanks, rank: int, name: str) -> None:
    available = positive_ranks.max_rank
    rank = min(rank, positive_ranks.num_references)
    if available is not None and available < rank:
        raise UsageError(
            f"`{name}` needs the ranks up to {rank}. Received: "
            f"`positive_ranks` cut at max_rank={available}. Search further, "
            "or give no `max_rank`."
        )
