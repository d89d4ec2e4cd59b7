"""Averages the values of single queries over runs."""

import zipfile
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from keras_dml.comparison.records import RunRecord

FILE = "per_query.npz"
# Means are rounded to this many decimals, which removes rounding errors.
DIGITS = 12


class QueryValues(NamedTuple):
    """The values of a metric, one for each query.

    Args:
        ids: 1D array `(num_queries,)`, sorted.
        labels: 1D array `(num_queries,)`.
        values: Float array `(num_queries,)`, NaN for lone queries.
    """

    ids: np.ndarray
    labels: np.ndarray
    values: np.ndarray


def mean_over_runs(
    records: Iterable[RunRecord], metric: str
) -> QueryValues | str:
    """Averages a metric of every query over runs.

    Args:
        records: Finished runs.
        metric: Name of a metric.

    Returns:
        `QueryValues`, or a string that says why they are missing.
    """
    total: QueryValues | None = None
    count = 0
    for record in records:
        found = _read(record, metric)
        if isinstance(found, str):
            return found
        if total is None:
            total = found
        elif same_queries(total, found):
            total = total._replace(values=total.values + found.values)
        else:
            return f"`{record.run}` was measured on other queries"
        count += 1
    if total is None:
        return "there is no finished run"
    return total._replace(values=np.round(total.values / count, DIGITS))


def same_queries(first: QueryValues, second: QueryValues) -> bool:
    """Returns whether two results are of the same queries."""
    return np.array_equal(first.ids, second.ids) and np.array_equal(
        first.labels, second.labels
    )


def _read(record: RunRecord, metric: str) -> QueryValues | str:
    if record.folder is None or not (record.folder / FILE).is_file():
        return f"`{record.run}` has no `{FILE}`"
    try:
        with np.load(record.folder / FILE, allow_pickle=False) as file:
            if metric not in file:
                return f"`{FILE}` of `{record.run}` has no {metric}"
            ids, labels = file["ids"], file["labels"]
            values = file[metric].astype(np.float64)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return f"`{FILE}` of `{record.run}` cannot be read"
    if not ids.shape == labels.shape == values.shape or ids.ndim != 1:
        return f"`{FILE}` of `{record.run}` has arrays of different lengths"
    order = np.argsort(ids, kind="stable")
    return QueryValues(ids[order], labels[order], values[order])
