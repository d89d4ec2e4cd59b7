"""The names of metrics, and the functions that compute them."""

import re
from collections.abc import Callable, Iterable

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.evaluation.metrics.by_query import (
    average_precision,
    map_at_k,
    map_at_r,
    precision_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
)
from keras_dml.evaluation.metrics.positive_ranks import PositiveRanks
from keras_dml.naming import shown

PLAIN = {
    "r_precision": r_precision,
    "map@r": map_at_r,
    "mrr": reciprocal_rank,
    "map": average_precision,
}
AT_K = {"recall": recall_at_k, "precision": precision_at_k, "map": map_at_k}


def metric_function(name: str) -> Callable[[PositiveRanks], np.ndarray]:
    """Returns the function that computes a metric.

    Args:
        name: `"r_precision"`, `"map@r"`, `"mrr"`, `"map"`, or `"recall@K"`,
            `"precision@K"` or `"map@K"` with a positive integer for K.

    Raises:
        UsageError: If no metric has this name.

    Example:

    >>> metric_function("recall@2")(PositiveRanks([2], [0, 1], 5))
    array([1.])
    """
    text = name if isinstance(name, str) else ""
    if text in PLAIN:
        return PLAIN[text]
    match = re.fullmatch(r"(\w+)@([1-9][0-9]{0,17})", text)
    if match is None or match[1] not in AT_K:
        raise UsageError(
            f"A metric must be one of {', '.join(PLAIN)}, or "
            f"{', '.join(f'{kind}@K' for kind in AT_K)} with a positive "
            f"integer for K. Received: {shown(name)}. Choose one of them."
        )
    function, k = AT_K[match[1]], int(match[2])
    return lambda positive_ranks: function(positive_ranks, k)


def last_rank(name: str) -> int:
    """Returns the K in the name of a metric; 0 if it has none.

    Example:

    >>> last_rank("map@10"), last_rank("map@r"), last_rank("mrr")
    (10, 0, 0)
    """
    k = str(name).rpartition("@")[2]
    return int(k) if k.isdecimal() else 0


def values_by_query(
    blocks: Iterable[PositiveRanks], names: Iterable[str]
) -> dict[str, np.ndarray]:
    """Computes metrics of every query from blocks of queries.

    Args:
        blocks: `PositiveRanks` of consecutive blocks of queries.
        names: Names that `metric_function` knows.

    Returns:
        Dict of the names to float64 arrays `(num_queries,)`.

    Raises:
        UsageError: If a metric is unknown or needs ranks that were cut off.
    """
    functions = {name: metric_function(name) for name in names}
    parts: dict[str, list[np.ndarray]] = {name: [] for name in functions}
    for ranks in blocks:
        for name, function in functions.items():
            parts[name].append(function(ranks))
    return {name: np.concatenate(part) for name, part in parts.items()}
