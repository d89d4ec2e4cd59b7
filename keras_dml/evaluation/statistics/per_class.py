"""Metrics of every class, so that the mean does not hide a bad class."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import one_of, require
from keras_dml.errors import UsageError
from keras_dml.evaluation.labels import as_label_sets


@dataclasses.dataclass(frozen=True, repr=False)
class ClassTable(Brief):
    """Holds the means of metrics over the queries of each class.

    Args:
        labels: 1D array `(classes,)`, each class once.
        num_queries: Int64 array `(classes,)`, lone queries included.
        num_lone: Int64 array `(classes,)`, queries without a positive; the
            means leave them out.
        means: Dict of metrics to float64 arrays `(classes,)`, NaN for a class
            whose queries are all lone.
    """

    labels: np.ndarray
    num_queries: np.ndarray
    num_lone: np.ndarray
    means: dict[str, np.ndarray]

    def sorted_by(self, metric: str) -> "ClassTable":
        """Returns the table sorted by a metric, worst class first, NaN last."""
        order = np.argsort(self._means_of(metric), kind="stable")
        return ClassTable(
            self.labels[order],
            self.num_queries[order],
            self.num_lone[order],
            {name: means[order] for name, means in self.means.items()},
        )

    def worst(self, metric: str) -> tuple[Any, float]:
        """Returns the class with the smallest mean, and this mean.

        If several classes have the smallest mean, it returns the first.
        """
        means = self._means_of(metric)
        if np.isnan(means).all():
            raise UsageError(
                "The worst class needs a class with a query that has a "
                f"positive. Received: {len(means)} classes without one. Give "
                "two images or more of some class."
            )
        row = int(np.nanargmin(means))
        return self.labels[row].item(), float(means[row])

    def rows(self) -> list[dict[str, Any]]:
        """Returns a dict of Python values per class; NaN becomes `None`."""
        return [
            {
                "label": self.labels[row].item(),
                "num_queries": int(self.num_queries[row]),
                "num_lone": int(self.num_lone[row]),
                **{
                    name: None if np.isnan(means[row]) else float(means[row])
                    for name, means in self.means.items()
                },
            }
            for row in range(len(self.labels))
        ]

    def _brief_title(self) -> str:
        return f"ClassTable: {len(self.labels):,} classes, the worst first"

    def _brief_rows(self) -> list[dict[str, Any]]:
        return self.sorted_by(list(self.means)[-1]).rows()

    def _means_of(self, metric: str) -> np.ndarray:
        return self.means[one_of("metric", metric, self.means)]


def class_table(per_query: Mapping[str, np.ndarray], labels: Any) -> ClassTable:
    """Averages metrics over the queries of each class.

    Args:
        per_query: Dict of metrics to float arrays `(num_queries,)`, NaN for
            lone queries, such as `RetrievalResult.per_query`.
        labels: Labels of the queries: 1D array, 0-1 matrix or list of sets. A
            query with several labels counts in each of its classes.

    Returns:
        `ClassTable` with its classes in ascending order.

    Raises:
        UsageError: If labels and values do not match, or there are none.

    Example:

    >>> table = class_table({"recall@1": np.array([1.0, 0.0, 1.0])}, [5, 7, 5])
    >>> table.worst("recall@1")
    (7, 0.0)
    """
    require(per_query, "per_query", "a dict of at least one metric", per_query)
    num_queries = len(next(iter(per_query.values())))
    sets = as_label_sets(labels, num_queries, "labels")
    names, codes = np.unique(sets.values, return_inverse=True)
    owners = sets.owners

    def count(rows: np.ndarray) -> np.ndarray:
        return np.bincount(codes[rows], minlength=len(names))

    means, lone = {}, np.ones(num_queries, bool)
    for metric, values in per_query.items():
        kept = ~np.isnan(values)
        lone &= ~kept
        totals = np.bincount(
            codes, np.where(kept, values, 0.0)[owners], minlength=len(names)
        )
        counts = count(kept[owners])
        means[metric] = np.where(
            counts > 0, totals / np.maximum(counts, 1), np.nan
        )
    return ClassTable(names, np.bincount(codes), count(lone[owners]), means)
