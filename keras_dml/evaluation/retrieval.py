"""All retrieval metrics of a set of embeddings in one call."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.evaluation.clustering import (
    cluster,
    normalized_mutual_information,
)
from keras_dml.evaluation.exact_index import ExactIndex
from keras_dml.evaluation.metrics import (
    map_at_r,
    mean_over_queries,
    r_precision,
    recall_at_k,
    reciprocal_rank,
)
from keras_dml.evaluation.positive_ranks import PositiveRanks
from keras_dml.evaluation.spaces import Space
from keras_dml.evaluation.validation import (
    as_counts,
    as_embeddings,
    as_ids,
    as_labels,
)


@dataclasses.dataclass(frozen=True)
class RetrievalResult:
    """What `evaluate_retrieval` measured.

    Args:
        metrics: Dict of names such as `"recall@1"` to means in [0, 1].
        per_query: Dict of the retrieval metrics to float64 arrays
            `(num_queries,)`, NaN for lone queries.
        num_queries: Integer, lone queries included.
        num_references: Integer, the size of the gallery.
        num_lone: Integer, queries without a positive, which no mean includes.
    """

    metrics: dict[str, float]
    per_query: dict[str, np.ndarray]
    num_queries: int
    num_references: int
    num_lone: int


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
) -> RetrievalResult:
    """Measures how well queries find the references of their class.

    Without references the queries search one another, and each is kept from
    finding itself. With references a query is kept from finding the reference
    of its own id, where both have ids.

    Args:
        query_embeddings: Array `(num_queries, dim)` of real numbers.
        query_labels: 1D array `(num_queries,)` of integers or strings.
        reference_embeddings: Array `(num_references, dim)` or `None` to
            search the queries. Defaults to `None`.
        reference_labels: 1D array `(num_references,)`. Defaults to `None`.
        query_ids: 1D array `(num_queries,)` of unique integers or strings.
            Defaults to `None`: positions.
        reference_ids: 1D array `(num_references,)`. Defaults to `None`.
        k: Integer or several, of Recall@K. Defaults to `(1, 2, 4, 8)`.
        normalize: Boolean, whether to compare by cosine, or by the Euclidean
            distance of the raw embeddings. Defaults to `True`.
        clustering: Boolean, whether to cluster the queries and add NMI.
            Defaults to `False`.
        cluster_arguments: Dict of arguments for `cluster`, such as
            `{"init": "k-means++", "num_starts": 10}`. Defaults to `None`.
        seed: Integer, of the clustering. Defaults to `0`.

    Returns:
        `RetrievalResult` with the metrics `recall@K`, `r_precision`, `map@r`,
        `mrr`, and `nmi` and `nmi_geometric` when clustering.

    Raises:
        UsageError: If arrays do not match, hold NaN, or no query has a
            positive reference.

    Example:

    >>> embeddings = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> evaluate_retrieval(embeddings, [0, 0, 1, 1]).metrics["recall@1"]
    1.0
    """
    ks = as_counts(k)
    _check_references(
        reference_embeddings, reference_labels, query_ids, reference_ids
    )
    queries = as_embeddings(query_embeddings, "query_embeddings")
    labels = as_labels(query_labels, len(queries), "query_labels")
    if reference_embeddings is None:
        references, gallery = queries, labels
        query_ids = as_ids(query_ids, len(queries), "query_ids")
        reference_ids = query_ids
    else:
        _check_not_itself(query_embeddings, reference_embeddings, query_ids)
        references, gallery = reference_embeddings, reference_labels
    metric = "cosine" if normalize else "euclidean"
    references = as_embeddings(
        references, "reference_embeddings", queries.shape[1]
    )
    index = ExactIndex(metric).build(references, reference_ids)
    blocks = index.positive_rank_blocks(queries, labels, gallery, query_ids)
    result = _summarize(_values_by_query(blocks, ks), len(references))
    if clustering:
        arguments = {"seed": seed, **(cluster_arguments or {})}
        result.metrics.update(
            _clustering_metrics(queries, labels, metric, arguments)
        )
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
    ).metrics


def _values_by_query(
    blocks: Iterable[PositiveRanks], ks: tuple[int, ...]
) -> dict[str, np.ndarray]:
    parts: dict[str, list[np.ndarray]] = {}
    for ranks in blocks:
        values = {f"recall@{k}": recall_at_k(ranks, k) for k in ks}
        values["r_precision"] = r_precision(ranks)
        values["map@r"] = map_at_r(ranks)
        values["mrr"] = reciprocal_rank(ranks)
        for name, part in values.items():
            parts.setdefault(name, []).append(part)
    return {name: np.concatenate(part) for name, part in parts.items()}


def _summarize(
    per_query: dict[str, np.ndarray], num_references: int
) -> RetrievalResult:
    return RetrievalResult(
        metrics={
            name: mean_over_queries(values)
            for name, values in per_query.items()
        },
        per_query=per_query,
        num_queries=len(per_query["mrr"]),
        num_references=num_references,
        num_lone=int(np.isnan(per_query["mrr"]).sum()),
    )


def _clustering_metrics(
    embeddings: np.ndarray,
    labels: np.ndarray,
    metric: str,
    arguments: Mapping[str, Any],
) -> dict[str, float]:
    rows = Space.fit(embeddings, metric).transform(embeddings)
    clusters = cluster(rows, len(np.unique(labels)), **arguments)
    return {
        "nmi": normalized_mutual_information(labels, clusters),
        "nmi_geometric": normalized_mutual_information(
            labels, clusters, "geometric"
        ),
    }


def _check_references(
    embeddings: Any, labels: Any, query_ids: Any, reference_ids: Any
) -> None:
    if (embeddings is None) != (labels is None):
        raise UsageError(
            "`reference_embeddings` and `reference_labels` must be given "
            "together. Received: one of them. Give both, or neither to "
            "search the queries."
        )
    if embeddings is None and reference_ids is not None:
        raise UsageError(
            "`reference_ids` needs `reference_embeddings`. Received: "
            "`reference_ids` alone. Name the queries by `query_ids`."
        )
    if embeddings is not None and (query_ids is None) != (
        reference_ids is None
    ):
        raise UsageError(
            "`query_ids` and `reference_ids` must be given together when "
            "there are references. Received: one of them. Give both, or "
            "neither when no query is in the gallery."
        )


def _check_not_itself(queries: Any, references: Any, query_ids: Any) -> None:
    if references is queries and query_ids is None:
        raise UsageError(
            "`reference_embeddings` must not be the `query_embeddings` "
            "themselves, or each query finds itself. Received: one array as "
            "both. Leave the references out, or give ids."
        )
