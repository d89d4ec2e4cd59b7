"""What an evaluation of embeddings measured."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from keras_dml.evaluation import IndexEvaluation, RetrievalResult

# More would not fit beside the name of a class.
CLASS_METRICS = ("recall@1", "r_precision", "map@r")


@dataclasses.dataclass(frozen=True)
class Measured:
    """The exact result, and what was asked for beside it.

    Args:
        exact: `RetrievalResult` of exact search.
        approximation: `IndexEvaluation`, what another index finds. Defaults
            to `None`.
        rerank: String, the re-ranking of `exact.reranked`. Defaults to
            `"none"`.
        class_names: Dict of labels to names. Defaults to an empty one:
            labels are names.
    """

    exact: RetrievalResult
    approximation: IndexEvaluation | None = None
    rerank: str = "none"
    class_names: Mapping[Any, str] = dataclasses.field(default_factory=dict)

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the index that was asked for."""
        if self.approximation is None:
            return self.exact.metrics
        return self.approximation.metrics

    def flat(self) -> dict[str, float]:
        """All numbers under one name each, as `--json` prints them.

        `_low` and `_high` are the ends of an interval, `_reranked` is after
        re-ranking; of an approximate index `_exact` is what exact search
        finds and `_difference` the index's own minus that.
        """
        numbers = dict(self.metrics)
        if self.approximation is not None:
            numbers.update(self.approximation.ann_recall)
            for name, value in self.exact.metrics.items():
                numbers[f"{name}_exact"] = value
            for name, value in self.approximation.differences.items():
                numbers[f"{name}_difference"] = value
        for name, interval in self.exact.intervals.items():
            numbers[f"{name}_low"] = interval.low
            numbers[f"{name}_high"] = interval.high
        if self.exact.reranked is not None:
            for name, value in self.exact.reranked.metrics.items():
                numbers[f"{name}_reranked"] = value
        return numbers

    def rows(self) -> list[dict[str, Any]]:
        """One row per metric, one column for everything known of it."""
        rows = []
        for name, exact in self.exact.metrics.items():
            row: dict[str, Any] = {"metric": name, "exact": exact}
            if self.approximation is not None:
                found = self.approximation.metrics.get(name)
                row["scann"] = "" if found is None else found
                row["difference"] = (
                    "" if found is None else f"{found - exact:+.4f}"
                )
            if self.exact.intervals:
                interval = self.exact.intervals.get(name)
                row["95 % interval"] = (
                    ""
                    if interval is None
                    else f"{interval.low:.4f} to {interval.high:.4f}"
                )
            if self.exact.reranked is not None:
                row[self.rerank] = self.exact.reranked.metrics.get(name, "")
            rows.append(row)
        return rows

    def class_rows(self) -> list[dict[str, Any]]:
        """One row per class, the lowest MAP@R first; none unless asked for."""
        if self.exact.per_class is None:
            return []
        return [
            {
                "class": self.class_names.get(row["label"], str(row["label"])),
                "queries": row["num_queries"],
                **{name: row[name] for name in CLASS_METRICS if name in row},
            }
            for row in self.exact.per_class.sorted_by("map@r").rows()
        ]
