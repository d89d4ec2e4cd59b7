"""Measures the retrieval of embeddings, with any index and re-ranking."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import Any

from keras_dml.brief import Brief
from keras_dml.checks import boolean, require
from keras_dml.console import progress_bar
from keras_dml.embeddings.checks import as_counts, one_or_several
from keras_dml.evaluation.index.ann_recall import (
    IndexEvaluation,
    evaluate_index,
)
from keras_dml.evaluation.index.registry import build_index, check_index
from keras_dml.evaluation.index.spaces import metric_of
from keras_dml.evaluation.inputs import RetrievalInputs
from keras_dml.evaluation.metrics.metric_names import last_rank
from keras_dml.evaluation.parts import query_and_gallery_parts
from keras_dml.evaluation.reranking.base import Reranking
from keras_dml.evaluation.reranking.registry import as_reranking
from keras_dml.evaluation.result import RetrievalResult, metric_rows
from keras_dml.evaluation.retrieval import (
    clustering_arguments,
    clustering_metrics,
    measure,
    metric_names,
)

UNITS = ("queries", "classes")
# More columns would not fit next to the name of a class.
CLASS_METRICS = ("recall@1", "r_precision", "map@r")


@dataclasses.dataclass(frozen=True, repr=False)
class Measured(Brief):
    """Holds the results of `evaluate`.

    Args:
        exact: `RetrievalResult` of exact search.
        approximation: `IndexEvaluation` of another index. Defaults to
            `None`.
        rerank: String, the re-ranking of `exact.reranked`. Defaults to
            `"none"`.
        class_names: Dict of labels to names. Defaults to an empty dict:
            tables show the labels.
        index: String, the index of `approximation`. Defaults to `"exact"`.
    """

    exact: RetrievalResult
    approximation: IndexEvaluation | None = None
    rerank: str = "none"
    class_names: Mapping[Any, str] = dataclasses.field(default_factory=dict)
    index: str = "exact"

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics of the requested index.

        Those of an approximate index are fewer, see `evaluate`.
        """
        return (self.approximation or self.exact).metrics

    def flat(self) -> dict[str, float]:
        """Returns all numbers by name in one dict, as `--json` prints them.

        The suffixes `_low` and `_high` mark the ends of an interval, and
        `_reranked` the value after re-ranking. For an approximate index
        `_exact` marks the value of exact search, and `_difference` the value
        of the index minus that of exact search; intervals and re-ranking are
        of exact search there, so that their suffixes follow `_exact`.
        """
        exact, numbers = self.exact, dict(self.metrics)
        of = "" if self.approximation is None else "exact_"

        def add(suffix: str, values: Mapping[str, float]) -> None:
            numbers.update({f"{key}_{suffix}": values[key] for key in values})

        if self.approximation is not None:
            numbers.update(self.approximation.ann_recall)
            add("exact", exact.metrics)
            add("difference", self.approximation.differences)
        for name, interval in exact.intervals.items():
            numbers[f"{name}_{of}low"] = interval.low
            numbers[f"{name}_{of}high"] = interval.high
        if exact.reranked is not None:
            add(f"{of}reranked", exact.reranked.metrics)
        return numbers

    def rows(self) -> list[dict[str, Any]]:
        """Returns one row per metric, with a column per kind of result."""
        columns = self.exact.columns()
        if self.exact.reranked is not None:
            columns[self.rerank] = columns.pop("reranked")
        if self.approximation is not None:
            differences = self.approximation.differences
            columns = {
                "exact": columns.pop("exact"),
                self.index: self.approximation.metrics,
                "difference": {
                    name: f"{value:+.4f}" for name, value in differences.items()
                },
                **columns,
            }
        return metric_rows(columns)

    def _brief_title(self) -> str:
        return f"Measured: {self.exact.counts()}"

    _brief_rows = rows

    def class_rows(self) -> list[dict[str, Any]]:
        """Returns one row per class, lowest MAP@R first, if requested."""
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


def ranks_and_names(k: Any) -> tuple[tuple[int, ...], list[str]]:
    """Returns the ranks of Recall@K and the names of further metrics in `k`.

    Raises:
        UsageError: If a rank is no positive integer.
    """
    several = one_or_several(k, "k")
    extra = [one for one in several if isinstance(one, str)]
    numbers = [one for one in several if not isinstance(one, str)]
    return as_counts(numbers or several), extra


def evaluate(
    embeddings: Any,
    labels: Any = None,
    *,
    references: Any = None,
    k: int | Iterable[int | str] = (1, 2, 4, 8),
    normalize: bool = True,
    index: str = "exact",
    rerank: str | Reranking = "none",
    clustering: bool | Mapping[str, Any] = False,
    intervals: bool | str = False,
    per_class: bool = False,
) -> Measured:
    """Measures how well images find others of their class.

    Args:
        embeddings: Array `(rows, dim)`; or an `EmbeddingSet`, which also has
            ids and roles; or the path of a file or folder that
            `load_embeddings` reads.
        labels: 1D array `(rows,)` of integers or strings, a 0-1 matrix
            `(rows, classes)` or a list of sets. Defaults to `None`: those of
            the `EmbeddingSet` or the file.
        references: The gallery to search if it holds other images than
            `embeddings`: a tuple `(embeddings, labels)`, an `EmbeddingSet` or
            a path. Classes are compared by name where both have
            `class_names`. Defaults to `None`: the rows with the role
            `"gallery"`, or all other rows if there are no roles.
        k: Integer or several integers, the K of Recall@K. The names of
            further metrics may follow, as in `(1, "map@10")`. Defaults to
            `(1, 2, 4, 8)`.
        normalize: Boolean, whether to compare by cosine; otherwise by the
            Euclidean distance of the unchanged embeddings. Defaults to
            `True`.
        index: `"exact"`, or `"scann"` to measure ScaNN as well as exact
            search. Defaults to `"exact"`.
        rerank: `"none"`, `"query_expansion"`, `"k_reciprocal"` or a
            `Reranking`, to measure the same embeddings after re-ranking as
            well. Defaults to `"none"`.
        clustering: Boolean, whether to cluster the queries and add NMI and
            AMI; or a dict of arguments of `cluster`. Defaults to `False`.
        intervals: Boolean, whether to add 95 % bootstrap intervals that draw
            classes; or the unit to draw, `"queries"` or `"classes"`. Defaults
            to `False`.
        per_class: Boolean, whether to add a table of classes, and the value
            of the worst class as `..._worst_class`. Defaults to `False`.

    Returns:
        `Measured`: `metrics` is a dict of `recall@K`, `r_precision`, `map@r`,
        `mrr` and the requested extras; `exact` is a `RetrievalResult` with a
        value for each query. For `"scann"`, only `exact` has `mrr` and `map`,
        which need all ranks, and what `clustering` and `per_class` add.

    Raises:
        UsageError: If arrays do not match or hold NaN, a name is unknown,
            the images have no labels, no query has a positive, other weights
            made the references, or these are the queries themselves.

    Example:

    >>> rows = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> evaluate(rows, ["cat", "cat", "dog", "dog"], k=1).metrics["recall@1"]
    1.0
    """
    check_index(index)
    reranking, unit = as_reranking(rerank), _unit(intervals)
    metric = metric_of(normalize)
    if reranking is not None:
        reranking.check_metric(metric)
    boolean("per_class", per_class)
    clustering_arguments(clustering)
    ks, extra = ranks_and_names(k)
    names = metric_names(ks, extra)
    queries, gallery = query_and_gallery_parts(embeddings, labels, references)
    by_id = references is None
    inputs = RetrievalInputs(
        queries.embeddings,
        queries.labels,
        gallery.embeddings,
        gallery.labels,
        queries.ids if by_id else None,
        gallery.ids if by_id else None,
        metric,
    )
    count = len(inputs.queries) * (1 if reranking is None else 2)
    approximation = None
    with progress_bar() as progress:
        task = progress.add_task("comparing all images", total=count, note="")
        advance = functools.partial(progress.advance, task)
        result = measure(inputs, names, None, advance)
        if reranking is not None:
            reranked = measure(inputs, names, reranking, advance)
            result = dataclasses.replace(result, reranked=reranked)
        if index != "exact":
            progress.reset(
                task, description=f"searching with {index}", total=None
            )
            approximation = evaluate_index(
                build_index(index, gallery, normalize),
                inputs.queries,
                inputs.labels,
                inputs.reference_labels,
                query_ids=inputs.query_ids,
                k=ks,
                extra_metrics=filter(last_rank, extra),
            )
    if per_class:
        result = result.with_classes(inputs.labels)
    if unit is not None:
        classes = inputs.labels if unit == "classes" else None
        result = result.with_intervals(classes)
    result.metrics.update(clustering_metrics(inputs, clustering))
    class_names = () if queries.class_names is None else queries.class_names
    return Measured(
        result,
        approximation,
        rerank if isinstance(rerank, str) else type(rerank).__name__,
        {label: str(name) for label, name in enumerate(class_names)},
        index,
    )


def _unit(intervals: bool | str) -> str | None:
    """Returns the unit that the bootstrap draws; `None` for no intervals."""
    if isinstance(intervals, bool):
        return "classes" if intervals else None
    wanted = f"a boolean or one of {UNITS}"
    known = isinstance(intervals, str) and intervals in UNITS
    require(known, "intervals", wanted, intervals)
    return intervals
