"""Measures how queries retrieve each other, or the images of a gallery."""

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from keras_dml.checks import one_of, require
from keras_dml.embeddings.checks import as_counts, one_or_several
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.spaces import Space, metric_of
from keras_dml.evaluation.inputs import RetrievalInputs
from keras_dml.evaluation.labels import is_multi_label
from keras_dml.evaluation.metrics.clustering import (
    AVERAGES,
    adjusted_mutual_information,
    check_clustering,
    cluster,
    normalized_mutual_information,
)
from keras_dml.evaluation.metrics.metric_names import (
    metric_function,
    values_by_query,
)
from keras_dml.evaluation.metrics.positive_ranks import (
    PositiveRanks,
    ranks_from_ids,
)
from keras_dml.evaluation.reranking.base import Reranking
from keras_dml.evaluation.result import RetrievalResult


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
    clustering: bool | Mapping[str, Any] = False,
    extra_metrics: Iterable[str] = (),
) -> RetrievalResult:
    """Measures how well queries find the references of their class.

    Without references the queries search each other, and no query finds
    itself. With references a query never finds the reference with its own id,
    if both have ids.

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
        k: Integer or several integers, the K of Recall@K. Defaults to
            `(1, 2, 4, 8)`.
        normalize: Boolean, whether to compare by cosine; otherwise by the
            Euclidean distance of the unchanged embeddings. Defaults to
            `True`.
        clustering: Boolean, whether to cluster the queries and add NMI and
            AMI; or a dict of arguments of `cluster`, such as
            `{"init": "k-means++", "num_starts": 10}`. Defaults to `False`.
        extra_metrics: Strings, further metrics that `metric_function` knows,
            such as `"map@10"` or `"precision@5"`. Defaults to `()`.

    Returns:
        `RetrievalResult` with the metrics `recall@K`, `r_precision`, `map@r`
        and `mrr`, and with `clustering` also `nmi`, `nmi_geometric`, `ami`
        and `ami_geometric`.

    Raises:
        UsageError: If arrays do not match, hold NaN, or no query has a
            positive reference.

    Example:

    >>> embeddings = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> evaluate_retrieval(embeddings, [0, 0, 1, 1]).metrics["recall@1"]
    1.0
    """
    clustering_arguments(clustering)
    inputs = RetrievalInputs(
        query_embeddings,
        query_labels,
        reference_embeddings,
        reference_labels,
        query_ids,
        reference_ids,
        metric_of(normalize),
    )
    result = measure(inputs, metric_names(k, extra_metrics))
    result.metrics.update(clustering_metrics(inputs, clustering))
    return result


@functools.wraps(evaluate_retrieval, assigned=())
def retrieval_metrics(*arguments: Any, **settings: Any) -> dict[str, float]:
    """Returns the metrics of `evaluate_retrieval`; the arguments are the same.

    Returns:
        Dict of names such as `"recall@1"` and `"map@r"` to floats in [0, 1].

    Example:

    >>> embeddings = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> retrieval_metrics(embeddings, [0, 0, 1, 1], k=1)["map@r"]
    1.0
    """
    return evaluate_retrieval(*arguments, **settings).metrics


def evaluate_lists(
    neighbor_ids: Any,
    query_labels: Any,
    reference_ids: Any,
    reference_labels: Any,
    query_ids: Any = None,
    metrics: Iterable[str] = ("recall@1", "r_precision", "map@r"),
) -> RetrievalResult:
    """Measures lists of neighbors that an index or a re-ranking returned.

    Args:
        neighbor_ids: 2D array `(num_queries, k)` of reference ids, nearest
            first, as `Index.search` returns them.
        query_labels: Labels of the queries, as for `evaluate_retrieval`.
        reference_ids: 1D array `(num_references,)`.
        reference_labels: Labels of the references.
        query_ids: 1D array `(num_queries,)`; a query's own id in its list is
            skipped. Defaults to `None`.
        metrics: Strings that `metric_function` knows. Defaults to
            `("recall@1", "r_precision", "map@r")`.

    Returns:
        `RetrievalResult`.

    Raises:
        UsageError: If arrays do not match, no metric is named, or one needs
            longer lists: `r_precision` and `map@r` as long as the largest
            class, `mrr` and `map` the whole gallery.

    Example:

    >>> lists = [[7, 5], [5, 7]]
    >>> result = evaluate_lists(
    ...     lists, [0, 1], [5, 7], [0, 1], metrics=["recall@1"]
    ... )
    >>> result.metrics["recall@1"]
    0.0
    """
    names = one_or_several(metrics, "metrics")
    advice = "Name one, such as `recall@1`."
    require(names, "metrics", "at least one name", metrics, advice)
    ranks = ranks_from_ids(
        neighbor_ids, query_labels, reference_ids, reference_labels, query_ids
    )
    return RetrievalResult.of(
        values_by_query([ranks], names), ranks.num_references
    )


def metric_names(
    k: int | Iterable[int], extra: Iterable[str] = ()
) -> tuple[str, ...]:
    """Returns the names of the metrics that `evaluate_retrieval` measures."""
    several = isinstance(extra, Iterable) and not isinstance(extra, str)
    advice = "Put it in a list."
    require(several, "extra_metrics", "several names", extra, advice)
    recalls = [f"recall@{count}" for count in as_counts(k)]
    names = (*recalls, "r_precision", "map@r", "mrr", *extra)
    for name in names:
        metric_function(name)
    return tuple(dict.fromkeys(names))


def measure(
    inputs: RetrievalInputs,
    names: Iterable[str],
    reranking: Reranking | None = None,
    progress: Callable[[int], Any] = lambda count: None,
) -> RetrievalResult:
    """Measures metrics by exact search, or after a re-ranking.

    Args:
        inputs: `RetrievalInputs`.
        names: Strings that `metric_function` knows.
        reranking: `Reranking` or `None`. Defaults to `None`.
        progress: Function that is called after each block of queries, with
            their number. Defaults to a function that does nothing.
    """
    blocks = inputs.positive_rank_blocks()
    if reranking is not None:
        blocks = reranking.positive_rank_blocks(inputs)

    def reporting() -> Iterator[PositiveRanks]:
        for block in blocks:
            yield block
            progress(block.num_queries)

    per_query = values_by_query(reporting(), names)
    return RetrievalResult.of(per_query, len(inputs.references))


def clustering_arguments(
    clustering: bool | Mapping[str, Any],
) -> Mapping[str, Any] | None:
    """Returns the arguments of `cluster`; `None` if nothing is clustered.

    Raises:
        UsageError: If `cluster` does not take them.
    """
    given = isinstance(clustering, bool | Mapping)
    require(given, "clustering", "a boolean or a dict", clustering)
    if clustering is False:
        return None
    arguments: Mapping[str, Any] = {} if clustering is True else clustering
    known = [*inspect.signature(check_clustering).parameters]
    for name in arguments:
        one_of("clustering", name, known)
    check_clustering(**arguments)
    return arguments


def clustering_metrics(
    inputs: RetrievalInputs, clustering: bool | Mapping[str, Any]
) -> dict[str, float]:
    """Returns NMI and AMI of the queries; empty if `clustering` is `False`."""
    arguments = clustering_arguments(clustering)
    if arguments is None:
        return {}
    if is_multi_label(inputs.labels):
        raise UsageError(
            "`clustering` needs one label for each image. Received: several. "
            "Leave it out."
        )
    space = Space.fit(inputs.queries, inputs.metric)
    rows, labels = space.transform(inputs.queries), inputs.labels
    clusters = cluster(rows, len(np.unique(labels)), **arguments)
    scores = {
        "nmi": normalized_mutual_information,
        "ami": adjusted_mutual_information,
    }
    metrics = {}
    for average in AVERAGES:
        suffix = "" if average == "arithmetic" else f"_{average}"
        for name, score in scores.items():
            metrics[f"{name}{suffix}"] = score(labels, clusters, average)
    return metrics
