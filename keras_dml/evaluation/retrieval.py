"""All retrieval metrics of a set of embeddings in one call."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.evaluation.clustering import cluster
from keras_dml.evaluation.exact_index import ExactIndex
from keras_dml.evaluation.labels import is_multi_label
from keras_dml.evaluation.metric_names import metric_function, values_by_query
from keras_dml.evaluation.mutual_information import (
    AVERAGES,
    adjusted_mutual_information,
    normalized_mutual_information,
)
from keras_dml.evaluation.positive_ranks import PositiveRanks, ranks_from_ids
from keras_dml.evaluation.reranking import Reranking
from keras_dml.evaluation.retrieval_inputs import RetrievalInputs
from keras_dml.evaluation.retrieval_result import RetrievalResult
from keras_dml.evaluation.spaces import Space
from keras_dml.evaluation.validation import as_counts

UNITS = ("queries", "classes")


def evaluate_retrieval(
    query_embeddings: Any,
    query_labels: Any,
    reference_embeddings: Any = None,
    reference_labels: Any = None,
    *,
    query_ids: Any = None,
    reference_ids: Any = None,
    k: int | Iterable[int] = (1, 2, 4, 8),
    normalize: bool = True,
    clustering: bool = False,
    cluster_arguments: Mapping[str, Any] | None = None,
    seed: int = 0,
    extra_metrics: Iterable[str] = (),
    per_class: bool = False,
    intervals: str | None = None,
    reranking: Reranking | None = None,
    progress: Callable[[int], Any] | None = None,
) -> RetrievalResult:
    """Measures how well queries find the references of their class.

    Without references the queries search one another, and each is kept from
    finding itself. With references a query is kept from finding the reference
    of its own id, where both have ids.

    Args:
        query_embeddings: Array `(num_queries, dim)` of real numbers.
        query_labels: 1D array `(num_queries,)` of integers or strings; or
            several labels for each query, as a 0-1 matrix
            `(num_queries, classes)` or a list of sets. References that share
            a label are positives.
        reference_embeddings: Array `(num_references, dim)` or `None` to
            search the queries. Defaults to `None`.
        reference_labels: Labels of the references. Defaults to `None`.
        query_ids: 1D array `(num_queries,)` of unique integers or strings.
            Defaults to `None`: positions.
        reference_ids: 1D array `(num_references,)`. Defaults to `None`.
        k: Integer or several, of Recall@K. Defaults to `(1, 2, 4, 8)`.
        normalize: Boolean, whether to compare by cosine, or by the Euclidean
            distance of the raw embeddings. Defaults to `True`.
        clustering: Boolean, whether to cluster the queries and add NMI and
            AMI. Defaults to `False`.
        cluster_arguments: Dict of arguments for `cluster`, such as
            `{"init": "k-means++", "num_starts": 10}`. Defaults to `None`.
        seed: Integer, of the clustering and the bootstrap. Defaults to `0`.
        extra_metrics: Strings, more metrics that `metric_function` knows,
            such as `"map@10"` or `"precision@5"`. Defaults to `()`.
        per_class: Boolean, whether to add a table of classes, and the value
            of the worst class as `..._worst_class`. Defaults to `False`.
        intervals: `"queries"` or `"classes"`, what to draw anew for 95 %
            intervals, or `None` for none. Defaults to `None`.
        reranking: `AlphaQueryExpansion` or `KReciprocal`, to measure what it
            makes of the same embeddings, or `None`. Defaults to `None`.
        progress: Function of the number of queries that a further block has
            answered, called after each; with `reranking` every query is
            answered twice. Defaults to `None`.

    Returns:
        `RetrievalResult` with the metrics `recall@K`, `r_precision`, `map@r`,
        `mrr`, and when clustering `nmi`, `nmi_geometric`, `ami` and
        `ami_geometric`.

    Raises:
        UsageError: If arrays do not match, hold NaN, or no query has a
            positive reference.

    Example:

    >>> embeddings = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> evaluate_retrieval(embeddings, [0, 0, 1, 1]).metrics["recall@1"]
    1.0
    """
    names = _names(as_counts(k), extra_metrics)
    _check_intervals(intervals)
    inputs = RetrievalInputs.of(
        query_embeddings,
        query_labels,
        reference_embeddings,
        reference_labels,
        query_ids,
        reference_ids,
        normalize,
    )
    if clustering and is_multi_label(query_labels):
        raise UsageError(
            "`clustering` needs one label for each image. Received: several. "
            "Leave it out."
        )
    result = _measure(inputs, names, None, progress)
    if reranking is not None:
        reranked = _measure(inputs, names, reranking, progress)
        result = dataclasses.replace(result, reranked=reranked)
    if per_class:
        result = result.with_classes(inputs.labels)
    if intervals:
        classes = inputs.labels if intervals == "classes" else None
        result = result.with_intervals(classes, seed=seed)
    if clustering:
        arguments = {"seed": seed, **(cluster_arguments or {})}
        result.metrics.update(_clustering_metrics(inputs, arguments))
    return result


def retrieval_metrics(
    query_embeddings: Any,
    query_labels: Any,
    reference_embeddings: Any = None,
    reference_labels: Any = None,
    *,
    query_ids: Any = None,
    reference_ids: Any = None,
    k: int | Iterable[int] = (1, 2, 4, 8),
    normalize: bool = True,
    clustering: bool = False,
    cluster_arguments: Mapping[str, Any] | None = None,
    seed: int = 0,
    extra_metrics: Iterable[str] = (),
    per_class: bool = False,
) -> dict[str, float]:
    """The metrics of `evaluate_retrieval`, which has the same arguments.

    Returns:
        Dict of names such as `"recall@1"` and `"map@r"` to floats in [0, 1].

    Example:

    >>> embeddings = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> retrieval_metrics(embeddings, [0, 0, 1, 1], k=1)["map@r"]
    1.0
    """
    return evaluate_retrieval(
        query_embeddings,
        query_labels,
        reference_embeddings,
        reference_labels,
        query_ids=query_ids,
        reference_ids=reference_ids,
        k=k,
        normalize=normalize,
        clustering=clustering,
        cluster_arguments=cluster_arguments,
        seed=seed,
        extra_metrics=extra_metrics,
        per_class=per_class,
    ).metrics


def evaluate_lists(
    neighbour_ids: Any,
    query_labels: Any,
    reference_ids: Any,
    reference_labels: Any,
    query_ids: Any = None,
    metrics: Iterable[str] = ("recall@1", "r_precision", "map@r"),
) -> RetrievalResult:
    """Measures lists of neighbours, of any index or re-ranking.

    Args:
        neighbour_ids: 2D array `(num_queries, k)` of reference ids, nearest
            first, as `Index.search` returns them.
        query_labels: Labels of the queries, as for `evaluate_retrieval`.
        reference_ids: 1D array `(num_references,)`.
        reference_labels: Labels of the references.
        query_ids: 1D array `(num_queries,)`; a query passes over its own id.
            Defaults to `None`.
        metrics: Strings that `metric_function` knows. Defaults to
            `("recall@1", "r_precision", "map@r")`.

    Returns:
        `RetrievalResult`.

    Raises:
        UsageError: If arrays do not match, or a metric needs longer lists:
            `r_precision` and `map@r` as long as the largest class, `mrr` and
            `map` the whole gallery.

    Example:

    >>> lists = [[7, 5], [5, 7]]
    >>> result = evaluate_lists(
    ...     lists, [0, 1], [5, 7], [0, 1], metrics=["recall@1"]
    ... )
    >>> result.metrics["recall@1"]
    0.0
    """
    ranks = ranks_from_ids(
        neighbour_ids, query_labels, reference_ids, reference_labels, query_ids
    )
    return RetrievalResult.of(
        values_by_query([ranks], metrics), ranks.num_references
    )


def _names(ks: tuple[int, ...], extra: Iterable[str]) -> tuple[str, ...]:
    if isinstance(extra, str):
        raise UsageError(
            "`extra_metrics` must be several names. "
            f"Received: extra_metrics={extra!r}. Put it in a list."
        )
    recalls = [f"recall@{k}" for k in ks]
    names = (*recalls, "r_precision", "map@r", "mrr", *extra)
    for name in names:
        metric_function(name)
    return tuple(dict.fromkeys(names))


def _check_intervals(intervals: str | None) -> None:
    if intervals is not None and intervals not in UNITS:
        raise UsageError(
            f"`intervals` must be one of {UNITS}, or None. "
            f"Received: intervals={intervals!r}. Choose what is drawn anew."
        )


def _measure(
    inputs: RetrievalInputs,
    names: tuple[str, ...],
    reranking: Reranking | None,
    progress: Callable[[int], Any] | None,
) -> RetrievalResult:
    blocks: Iterable[PositiveRanks]
    if reranking is None:
        index = ExactIndex(inputs.metric).build(
            inputs.references, inputs.reference_ids
        )
        blocks = index.positive_rank_blocks(
            inputs.queries,
            inputs.labels,
            inputs.reference_labels,
            inputs.query_ids,
        )
    else:
        blocks = reranking.positive_rank_blocks(inputs)
    if progress is not None:
        blocks = _reporting(blocks, progress)
    per_query = values_by_query(blocks, names)
    return RetrievalResult.of(per_query, len(inputs.references))


def _reporting(
    blocks: Iterable[PositiveRanks], progress: Callable[[int], Any]
) -> Iterator[PositiveRanks]:
    for block in blocks:
        yield block
        progress(block.num_queries)


def _clustering_metrics(
    inputs: RetrievalInputs, arguments: Mapping[str, Any]
) -> dict[str, float]:
    space = Space.fit(inputs.queries, inputs.metric)
    rows, labels = space.transform(inputs.queries), inputs.labels
    clusters = cluster(rows, len(np.unique(labels)), **arguments)
    metrics = {}
    for average in AVERAGES:
        suffix = "" if average == "arithmetic" else f"_{average}"
        metrics[f"nmi{suffix}"] = normalized_mutual_information(
            labels, clusters, average
        )
        metrics[f"ami{suffix}"] = adjusted_mutual_information(
            labels, clusters, average
        )
    return metrics
