"""Averages the values of single queries over runs."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from keras_dml.comparison.records import RunRecord
from keras_dml.errors import UsageError
from keras_dml.npz import read_npz
from keras_dml.run.folder import RunFolder

# Means are rounded to this many decimals, which removes rounding errors.
DIGITS = 12


class QueryValues(NamedTuple):
    """The values of a metric, one for each query.

    Args:
        ids: 1D array `(num_queries,)`, sorted.
        labels: 1D array `(num_queries,)`, or matrix `(num_queries, classes)`
            of several labels.
        values: Float array `(num_queries,)`, NaN for lone queries.
    """

    ids: np.ndarray
    labels: np.ndarray
    values: np.ndarray


def mean_over_runs(records: Iterable[RunRecord], metric: str) -> QueryValues:
    """Averages a metric of every query over runs.

    Args:
        records: Finished runs.
        metric: Name of a metric.

    Raises:
        UsageError: If values are missing or of different queries. The text
            completes a sentence of the page.
    """
    runs = list(records)
    if not runs:
        raise UsageError("there is no finished run")
    found = [_read(run, metric) for run in runs]
    for run, own in zip(runs, found, strict=True):
        if not same_queries(found[0], own):
            raise UsageError(f"`{run.run}` was measured on other queries")
    total = sum(own.values for own in found)
    return found[0]._replace(values=np.round(total / len(found), DIGITS))


def same_queries(first: QueryValues, second: QueryValues) -> bool:
    """Returns whether two results are of the same queries."""
    return np.array_equal(first.ids, second.ids) and np.array_equal(
        first.labels, second.labels
    )


def _read(record: RunRecord, metric: str) -> QueryValues:
    path = record.folder and RunFolder(record.folder).per_query
    if path is None or not path.is_file():
        raise UsageError(f"`{record.run}` has no values of single queries")
    try:
        file = read_npz(path, ["ids", "labels"], [metric])
    except UsageError as error:
        reason = f"`{path.name}` of `{record.run}` cannot be read"
        raise UsageError(reason) from error
    if metric not in file:
        raise UsageError(f"`{path.name}` of `{record.run}` has no {metric}")
    ids, labels, values = file["ids"], file["labels"], file[metric]
    if not ids.shape == labels.shape[:1] == values.shape or ids.ndim != 1:
        raise UsageError(
            f"`{path.name}` of `{record.run}` has arrays of different lengths"
        )
    order = np.argsort(ids, kind="stable")
    return QueryValues(ids[order], labels[order], values[order].astype(float))
