"""The result of an evaluation."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from keras_dml.brief import Brief
from keras_dml.evaluation.metrics.by_query import mean_over_queries
from keras_dml.evaluation.statistics.bootstrap import (
    Interval,
    bootstrap_intervals,
)
from keras_dml.evaluation.statistics.per_class import ClassTable, class_table


@dataclasses.dataclass(frozen=True, repr=False)
class RetrievalResult(Brief):
    """Holds the metrics that `evaluate_retrieval` measured.

    Args:
        metrics: Dict of names such as `"recall@1"` to means in [0, 1].
        per_query: Dict of the retrieval metrics to float64 arrays
            `(num_queries,)`, NaN for lone queries.
        num_queries: Integer, lone queries included.
        num_references: Integer, the size of the gallery.
        num_lone: Integer, the number of lone queries: they have no positive,
            and the means leave them out.
        intervals: Dict of the retrieval metrics to `Interval`. Defaults to
            an empty dict.
        per_class: `ClassTable`. Defaults to `None`.
        reranked: `RetrievalResult` after re-ranking. Defaults to `None`.
    """

    metrics: dict[str, float]
    per_query: dict[str, np.ndarray]
    num_queries: int
    num_references: int
    num_lone: int
    intervals: dict[str, Interval] = dataclasses.field(default_factory=dict)
    per_class: ClassTable | None = None
    reranked: "RetrievalResult | None" = None

    @classmethod
    def of(cls, per_query: dict[str, np.ndarray], num_references: int) -> Self:
        """Makes the result and averages the metrics over the queries."""
        lone = np.logical_and.reduce(
            [np.isnan(values) for values in per_query.values()]
        )
        return cls(
            metrics={
                name: mean_over_queries(values)
                for name, values in per_query.items()
            },
            per_query=per_query,
            num_queries=len(lone),
            num_references=num_references,
            num_lone=int(np.count_nonzero(lone)),
        )

    def with_intervals(self, classes: Any = None) -> Self:
        """Returns a copy with 95 % intervals; see `bootstrap_intervals`."""
        intervals = bootstrap_intervals(self.per_query, classes)
        return dataclasses.replace(self, intervals=intervals)

    def with_classes(self, labels: Any) -> Self:
        """Returns a copy with a class table and the worst class's values."""
        table = class_table(self.per_query, labels)
        worst = {
            f"{name}_worst_class": table.worst(name)[1]
            for name in self.per_query
        }
        metrics = {**self.metrics, **worst}
        return dataclasses.replace(self, metrics=metrics, per_class=table)

    def columns(self) -> dict[str, Mapping[str, Any]]:
        """Returns the columns of a table, each a dict of metrics to values."""
        columns: dict[str, Mapping[str, Any]] = {"exact": self.metrics}
        if self.intervals:
            columns["95 % interval"] = {
                name: f"{interval.low:.4f} to {interval.high:.4f}"
                for name, interval in self.intervals.items()
            }
        if self.reranked is not None:
            columns["reranked"] = self.reranked.metrics
        return columns

    def counts(self) -> str:
        """Returns the numbers of queries and references as text."""
        lone = f", {self.num_lone:,} without a positive" * bool(self.num_lone)
        return (
            f"{self.num_queries:,} queries{lone} in "
            f"{self.num_references:,} references"
        )

    def _brief_title(self) -> str:
        return f"RetrievalResult: {self.counts()}"

    def _brief_rows(self) -> list[dict[str, Any]]:
        return metric_rows(self.columns())


def metric_rows(
    columns: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Returns one row per metric of the first column.

    A cell is empty if its column has no value for the metric.
    """
    return [
        {"metric": metric}
        | {name: values.get(metric, "") for name, values in columns.items()}
        for metric in next(iter(columns.values()))
    ]
