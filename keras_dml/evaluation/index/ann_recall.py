"""Separates the retrieval errors of an index from those of the model."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import positive_integer, require
from keras_dml.embeddings.checks import as_counts, as_embeddings, as_ids
from keras_dml.evaluation.blocks import row_blocks
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.index.base import Index
from keras_dml.evaluation.labels import Relevance
from keras_dml.evaluation.metrics.by_query import mean_over_queries
from keras_dml.evaluation.metrics.metric_names import (
    last_rank,
    values_by_query,
)
from keras_dml.evaluation.metrics.positive_ranks import ranks_from_ids

NEIGHBORS_PER_BLOCK = 2**20
MAX_QUERIES_PER_BLOCK = 2**13
Lists = tuple[np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, repr=False)
class IndexEvaluation(Brief):
    """Compares the metrics of an index with those of exact search.

    Args:
        metrics: Dict of names such as `"recall@1"` to means in [0, 1],
            measured with the index.
        exact_metrics: Dict of the same metrics, measured with exact search:
            the quality of the model.
        ann_recall: Dict of names such as `"ann_recall@10"` to the share of
            the exact neighbors that the index finds: the quality of the
            index.
    """

    metrics: dict[str, float]
    exact_metrics: dict[str, float]
    ann_recall: dict[str, float]

    @property
    def differences(self) -> dict[str, float]:
        """Each metric minus that of exact search."""
        return {
            name: value - self.exact_metrics[name]
            for name, value in self.metrics.items()
        }

    def _brief_title(self) -> str:
        found = self.ann_recall.items()
        return "IndexEvaluation: " + ", ".join(
            f"{name} {share:.4f}" for name, share in found
        )

    def _brief_rows(self) -> list[dict[str, Any]]:
        return [
            {
                "metric": name,
                "index": value,
                "exact": self.exact_metrics[name],
                "difference": f"{self.differences[name]:+.4f}",
            }
            for name, value in self.metrics.items()
        ]


def ann_recall_at_k(
    index: Index,
    queries: Any,
    k: int,
    exact: Index | None = None,
    exclude_ids: Any = None,
) -> float:
    """Computes the share of the exact `k` nearest references that are found.

    `#(found & nearest) / k`, averaged over the queries. References that tie
    with the `k`-th nearest are equally near, so each of them counts as
    nearest, up to `k` of them, if it is among the `2 k` nearest.

    Args:
        index: `Index`.
        queries: Array `(num_queries, dim)`.
        k: Integer; if it exceeds the number of references, all are nearest.
        exact: Exact `Index` of the same references, or `None` to use
            `index.to_exact()`. Defaults to `None`.
        exclude_ids: 1D array `(num_queries,)` as in `Index.search`. Defaults
            to `None`.

    Returns:
        Float in [0, 1].

    Raises:
        UsageError: If `exact` is not exact or holds other references.

    Example:

    >>> from keras_dml.evaluation import ExactIndex
    >>> index = ExactIndex().build([[1.0, 0.0], [0.0, 1.0]])
    >>> ann_recall_at_k(index, [[2.0, 1.0]], k=1)
    1.0
    """
    positive_integer("k", k)
    pairs = _Pairs(index, exact)
    queries = as_embeddings(queries, "queries")
    own = exclude_ids
    if own is not None:
        own = as_ids(own, len(queries), "exclude_ids")
    shares = [
        pairs.shares(found, true, k)
        for _, found, true in pairs.search(queries, own, k, 2 * k)
    ]
    return float(np.mean(np.concatenate(shares)))


def evaluate_index(
    index: Index,
    query_embeddings: Any,
    query_labels: Any,
    reference_labels: Any,
    *,
    query_ids: Any = None,
    k: int | Iterable[int] = (1, 2, 4, 8),
    exact: Index | None = None,
    extra_metrics: Iterable[str] = (),
) -> IndexEvaluation:
    """Measures the retrieval metrics of an index and of exact search.

    The lists are as long as the largest K or the largest number of
    positives, whichever is larger. The memory for them does not grow with the
    number of queries.

    Args:
        index: `Index`.
        query_embeddings: Array `(num_queries, dim)`.
        query_labels: Labels of the queries as in `ranks_from_ids`.
        reference_labels: Labels of the references, in the order of
            `index.ids`.
        query_ids: 1D array `(num_queries,)`; a query never finds the
            reference with its own id. Defaults to `None`: no query is in the
            index.
        k: Integer or several integers, the K of Recall@K and of ANN recall.
            Defaults to `(1, 2, 4, 8)`.
        exact: Exact `Index` of the same references, or `None` to use
            `index.to_exact()`. Defaults to `None`.
        extra_metrics: Strings, further metrics `"precision@K"` and `"map@K"`.
            Defaults to `()`.

    Returns:
        `IndexEvaluation` with `recall@K`, `r_precision`, `map@r` and the
        extras.

    Raises:
        UsageError: If arrays do not match, `exact` is not exact or holds
            other references, no query has a positive, or a metric is unknown
            or needs all ranks, as `mrr` and `map` do.

    Example:

    >>> from keras_dml.evaluation import ExactIndex
    >>> index = ExactIndex().build([[1.0, 0.0], [0.0, 1.0]], ["right", "up"])
    >>> found = evaluate_index(index, [[2.0, 1.0]], [7], [7, 8], k=1)
    >>> found.metrics["recall@1"], found.ann_recall["ann_recall@1"]
    (1.0, 1.0)
    """
    ks = as_counts(k)
    pairs = _Pairs(index, exact)
    queries = as_embeddings(query_embeddings, "query_embeddings")
    rows = pairs.table.rows_of(query_ids, len(queries), "query_ids")
    own = None if query_ids is None else np.asarray(query_ids)
    positives = Relevance.of(
        query_labels, len(queries), reference_labels, len(pairs.table.ids)
    ).counts(rows)
    # Raises if all queries are lone.
    mean_over_queries(np.where(positives > 0, 0.0, np.nan))
    names = [*(f"recall@{n}" for n in ks), "r_precision", "map@r"]
    names = list(dict.fromkeys([*names, *extra_metrics]))
    length = max(*map(last_rank, names), int(positives.max()))
    length = min(length, len(pairs.table.ids))
    parts = []
    for block, found, true in pairs.search(
        queries, own, length, max(length, 2 * max(ks))
    ):
        labels = (
            query_labels[block],
            pairs.table.ids,
            reference_labels,
            None if own is None else own[block],
        )
        parts.append(
            (
                values_by_query([ranks_from_ids(found[0], *labels)], names),
                values_by_query([ranks_from_ids(true[0], *labels)], names),
                {f"ann_recall@{n}": pairs.shares(found, true, n) for n in ks},
            )
        )
    return IndexEvaluation(*map(_means, zip(*parts, strict=True)))


def _means(blocks: Sequence[dict[str, np.ndarray]]) -> dict[str, float]:
    """Averages metrics over all queries, from blocks of queries."""
    return {
        name: mean_over_queries(np.concatenate([one[name] for one in blocks]))
        for name in blocks[0]
    }


class _Pairs:
    """Searches an index and an exact index of the same references."""

    def __init__(self, index: Index, exact: Index | None) -> None:
        self.index = index
        self.table = IdTable.of(index.ids, len(index.ids))
        self.exact = _exact_of(index, exact, self.table)

    def search(
        self, queries: np.ndarray, own: np.ndarray | None, k: int, exact_k: int
    ) -> Iterator[tuple[slice, Lists, Lists]]:
        """Yields the lists of both indexes, in blocks of queries."""
        size = min(NEIGHBORS_PER_BLOCK // exact_k, MAX_QUERIES_PER_BLOCK)
        for block in row_blocks(len(queries), size):
            excluded = None if own is None else own[block]
            yield (
                block,
                self.index.search(queries[block], k, excluded),
                self.exact.search(queries[block], exact_k, excluded),
            )

    def shares(self, found: Lists, true: Lists, k: int) -> np.ndarray:
        """Computes the share of the `k` truly nearest in each found list."""
        ids, scores = (array[:, :k] for array in found)
        true_ids, true_scores = true
        # Excluded references have the score minus infinity.
        wanted = np.minimum(np.isfinite(true_scores).sum(axis=1), k)
        last = np.maximum(wanted - 1, 0)[:, None]
        is_near = true_scores >= np.take_along_axis(true_scores, last, axis=1)
        is_near &= np.isfinite(true_scores)
        # One number for each pair of a query and a reference.
        hits = np.isin(self._numbers(ids), self._numbers(true_ids)[is_near])
        hits &= np.isfinite(scores)
        counts = np.minimum(hits.sum(axis=1), wanted)
        return np.where(wanted > 0, counts / np.maximum(wanted, 1), 1.0)

    def _numbers(self, ids: np.ndarray) -> np.ndarray:
        offsets = np.arange(len(ids))[:, None] * len(self.table.ids)
        return offsets + self.table.rows_of_lists(ids, "ids")


def _exact_of(index: Index, exact: Index | None, table: IdTable) -> Index:
    if exact is None:
        return index.to_exact()
    advice = "Give an `ExactIndex` of the same references, or leave it out."
    require(exact.exact, "exact", "an exact index", exact, advice)
    same = np.array_equal(np.sort(exact.ids), np.sort(table.ids))
    require(same, "exact", "of the references of `index`", exact, advice)
    return exact
