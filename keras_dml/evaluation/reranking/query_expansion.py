"""Alpha query expansion: moves each query toward its nearest references."""

import dataclasses
from collections.abc import Iterator
from typing import Any, final

import numpy as np

from keras_dml.checks import not_negative, positive_integer
from keras_dml.embeddings.checks import as_embeddings, as_ids
from keras_dml.errors import UsageError
from keras_dml.evaluation.blocks import row_blocks
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.index.base import Index
from keras_dml.evaluation.index.exact import ExactIndex
from keras_dml.evaluation.index.spaces import Space
from keras_dml.evaluation.inputs import RetrievalInputs
from keras_dml.evaluation.metrics.positive_ranks import PositiveRanks
from keras_dml.evaluation.reranking.base import Reranking

QUERIES_AT_A_TIME = 1024


@final
@dataclasses.dataclass(frozen=True)
class AlphaQueryExpansion(Reranking):
    """Searches again with the queries that `expand_queries` returns.

    Args:
        k: Integer, how many neighbors are added to a query. Defaults to `10`.
        alpha: Float, the exponent of the cosine: larger values give near
            neighbors more weight. Defaults to `3.0`.

    Reference:
        Radenovic, Tolias and Chum, "Fine-tuning CNN Image Retrieval with No
        Human Annotation", 2018, section 3.5.
    """

    k: int = 10
    alpha: float = 3.0

    def check_metric(self, metric: str) -> None:
        if metric != "cosine":
            raise UsageError(
                "Query expansion weighs neighbors by their cosine. "
                f"Received: metric={metric!r}. Normalize the embeddings."
            )

    def positive_rank_blocks(
        self, inputs: RetrievalInputs
    ) -> Iterator[PositiveRanks]:
        self.check_metric(inputs.metric)
        expanded = expand_queries(
            inputs.queries,
            inputs.references,
            self.k,
            self.alpha,
            query_ids=inputs.query_ids,
            reference_ids=inputs.reference_ids,
            index=inputs.index,
        )
        return inputs.positive_rank_blocks(expanded)


def expand_queries(
    queries: Any,
    references: Any,
    k: int = 10,
    alpha: float = 3.0,
    *,
    query_ids: Any = None,
    reference_ids: Any = None,
    index: Index | None = None,
) -> np.ndarray:
    """Adds to each query its nearest references, weighted by their cosines.

    Computes `q + sum over its k nearest x of max(0, q.x)^alpha * x` with unit
    rows, and normalizes the result. With `alpha = 0` all neighbors have the
    same weight. To expand the references too, pass them as queries with their
    ids.

    Args:
        queries: Array `(num_queries, dim)`.
        references: Array `(num_references, dim)`.
        k: Integer, how many neighbors are added to a query. Defaults to `10`.
        alpha: Float, not negative. Defaults to `3.0`.
        query_ids: 1D array `(num_queries,)`; the reference with a query's own
            id is not added to it. Defaults to `None`.
        reference_ids: 1D array `(num_references,)`. Defaults to `None`:
            positions.
        index: `Index` of the references, with the same ids, that finds the
            neighbors by cosine. Defaults to `None`: an `ExactIndex`.

    Returns:
        Float32 array `(num_queries, dim)` of unit rows.

    Raises:
        UsageError: If arrays do not match or an argument is out of range.

    Example:

    >>> expand_queries([[1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], k=1)
    array([[1., 0.]], dtype=float32)

    Reference:
        Radenovic, Tolias and Chum, "Fine-tuning CNN Image Retrieval with No
        Human Annotation", 2018, section 3.5.
    """
    rows = as_embeddings(references, "references")
    queries = as_embeddings(queries, "queries", rows.shape[1])
    positive_integer("k", k)
    not_negative("alpha", alpha, "3 is usual, 0 is a plain average.")
    ids = as_ids(reference_ids, len(rows), "reference_ids")
    table = IdTable.of(ids, len(rows))
    own = query_ids
    if own is not None:
        own = as_ids(own, len(queries), "query_ids")
    index = index or ExactIndex().build(rows, ids)
    space = Space("cosine", np.zeros(rows.shape[1], np.float32))
    expanded = np.empty_like(queries)
    for block in row_blocks(len(queries), QUERIES_AT_A_TIME):
        excluded = None if own is None else own[block]
        found, scores = index.search(queries[block], k, exclude_ids=excluded)
        columns = table.rows_of(found.ravel(), found.size, "found")
        neighbors = space.transform(rows[columns])
        weights = np.maximum(scores, 0.0) ** alpha
        # A list of all references ends with the query, at minus infinity.
        weights[np.isneginf(scores)] = 0.0
        moved = np.einsum(
            "qk,qkd->qd", weights, neighbors.reshape(*found.shape, -1)
        )
        moved += space.transform(queries[block])
        expanded[block] = space.transform(moved)
    return expanded
