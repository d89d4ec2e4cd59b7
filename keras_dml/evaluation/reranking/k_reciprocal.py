"""k-reciprocal re-ranking, by images that are neighbors of each other."""

import dataclasses
from collections.abc import Iterator
from typing import Any, final

import numpy as np
from scipy import sparse

from keras_dml.checks import in_interval, one_of, positive_integer
from keras_dml.embeddings.checks import as_embeddings, as_ids
from keras_dml.evaluation.blocks import row_blocks
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.index.exact import ExactIndex
from keras_dml.evaluation.index.spaces import Space
from keras_dml.evaluation.inputs import RetrievalInputs
from keras_dml.evaluation.metrics.positive_ranks import (
    PositiveRanks,
    ranks_from_ids,
)
from keras_dml.evaluation.reranking.base import Reranking
from keras_dml.evaluation.reranking.reciprocal_sets import reciprocal_sets

# How many pairs of a query and a candidate are compared at a time.
CANDIDATES_AT_A_TIME = 2**15


@final
@dataclasses.dataclass(frozen=True)
class KReciprocal(Reranking):
    """Re-orders the nearest references by `k_reciprocal`.

    References beyond the candidates keep their ranks, so that every metric
    can be measured.

    Args:
        k1: Integer; two images are mutual neighbors if each is among the `k1`
            nearest images of the other. Defaults to `20`.
        k2: Integer, how many nearest images are averaged, including the image
            itself. Defaults to `6`.
        original_weight: Float in [0, 1], the weight of the distance between
            the embeddings; the paper's lambda. Defaults to `0.3`.
        candidates: Integer, how many of the nearest references are
            re-ordered. Defaults to `100`.

    Reference:
        Zhong, Zheng, Cao and Li, "Re-ranking Person Re-identification with
        k-reciprocal Encoding", 2017.
    """

    k1: int = 20
    k2: int = 6
    original_weight: float = 0.3
    candidates: int = 100

    def positive_rank_blocks(
        self, inputs: RetrievalInputs
    ) -> Iterator[PositiveRanks]:
        ids = inputs.index.ids
        lists, _ = k_reciprocal(
            inputs.queries,
            inputs.references,
            **dataclasses.asdict(self),
            query_ids=inputs.query_ids,
            reference_ids=ids,
            metric=inputs.metric,
        )
        own, start = inputs.query_ids, 0
        for whole in inputs.positive_rank_blocks():
            rows = slice(start, start + whole.num_queries)
            head = ranks_from_ids(
                lists[rows],
                inputs.labels[rows],
                ids,
                inputs.reference_labels,
                None if own is None else own[rows],
            )
            yield _continued(head, whole)
            start = rows.stop


def k_reciprocal(
    queries: Any,
    references: Any,
    k1: int = 20,
    k2: int = 6,
    original_weight: float = 0.3,
    candidates: int = 100,
    *,
    query_ids: Any = None,
    reference_ids: Any = None,
    metric: str = "cosine",
) -> tuple[np.ndarray, np.ndarray]:
    """Re-orders the nearest references of each query.

    The new distance is `(1 - w) * d_J(q, r) + w * d(q, r)` with
    `w = original_weight`. `d_J` is the Jaccard distance between the
    k-reciprocal neighbors of both images, weighted by `exp(-d)` and averaged
    over their `k2` nearest images. `d` is the squared distance divided by its
    mean over all pairs. The authors' code divides by the largest distance of
    each row instead, which needs all pairs.

    As in the paper, both queries and references count as neighbors, so the
    result of a query depends on the other queries.

    Args:
        queries: Array `(num_queries, dim)`.
        references: Array `(num_references, dim)`.
        k1: Integer; two images are mutual neighbors if each is among the `k1`
            nearest images of the other. Defaults to `20`.
        k2: Integer, how many nearest images are averaged, including the image
            itself. Defaults to `6`.
        original_weight: Float in [0, 1]. Defaults to `0.3`.
        candidates: Integer, how many of the nearest references are
            re-ordered. Defaults to `100`.
        query_ids: 1D array `(num_queries,)`; a query never finds the
            reference with its own id. Defaults to `None`.
        reference_ids: 1D array `(num_references,)`. Defaults to `None`:
            positions.
        metric: `"cosine"` or `"euclidean"`. Defaults to `"cosine"`.

    Returns:
        Tuple `(ids, scores)` of arrays `(num_queries, candidates)`, nearest
        first, as `Index.search` returns them; scores are negative distances.

    Raises:
        UsageError: If arrays do not match or an argument is out of range.

    Reference:
        Zhong, Zheng, Cao and Li, "Re-ranking Person Re-identification with
        k-reciprocal Encoding", 2017, equations 2 to 12.
    """
    positive_integer("k1", k1)
    positive_integer("k2", k2)
    positive_integer("candidates", candidates)
    advice = "1 keeps the order of the embeddings."
    in_interval("original_weight", original_weight, 0, 1, "both", advice)
    one_of("metric", metric, ("cosine", "euclidean"))
    gallery = as_embeddings(references, "references")
    queries = as_embeddings(queries, "queries", gallery.shape[1])
    ids = as_ids(reference_ids, len(gallery), "reference_ids")
    table = IdTable.of(ids, len(gallery))
    everything, query_rows = _join(queries, gallery, query_ids, table)
    index = ExactIndex(metric).build(gallery, ids)
    found, scores = index.search(queries, candidates, exclude_ids=query_ids)
    columns = table.rows_of_lists(found, "found")
    space = Space.fit(everything, metric)
    rows = space.transform(everything)
    neighbors = _neighbors(everything, metric, max(k1, k2 - 1))
    mean = _mean_squared_distance(rows)
    sets = reciprocal_sets(rows, neighbors[:, : k1 + 1], mean)
    sets = _average(sets, neighbors[:, :k2])
    # A list of all references ends with the query itself, at minus infinity.
    itself = np.isneginf(scores)
    scores[itself] = 0
    squared = 2 - 2 * scores if metric == "cosine" else -scores
    distances = original_weight * squared.astype(np.float64) / mean
    distances += (1 - original_weight) * _jaccard_distances(
        sets, query_rows, columns
    )
    distances[itself] = np.inf
    best = np.argsort(distances, axis=1, kind="stable")
    return (
        np.take_along_axis(found, best, axis=1),
        -np.take_along_axis(distances, best, axis=1),
    )


def _join(
    queries: np.ndarray, gallery: np.ndarray, query_ids: Any, table: IdTable
) -> tuple[np.ndarray, np.ndarray]:
    """Returns every image once, references first, and the query rows."""
    own = table.rows_of(query_ids, len(queries), "query_ids")
    new = own < 0
    if not new.any():
        return gallery, own
    own[new] = len(gallery) + np.arange(np.count_nonzero(new))
    return np.concatenate([gallery, queries[new]]), own


def _neighbors(everything: np.ndarray, metric: str, k: int) -> np.ndarray:
    """Returns each image and its `k` nearest others, `(images, k + 1)`."""
    own = np.arange(len(everything))
    k = min(k, len(everything) - 1)
    if k == 0:
        return own[:, None]
    index = ExactIndex(metric).build(everything)
    found, _ = index.search(everything, k, exclude_ids=own)
    return np.concatenate([own[:, None], found], axis=1)


def _mean_squared_distance(rows: np.ndarray) -> float:
    """Computes the mean over all pairs from the variances."""
    variance = rows.var(axis=0, dtype=np.float64).sum()
    return max(2 * float(variance), float(np.finfo(np.float32).tiny))


def _average(sets: sparse.csr_array, neighbors: np.ndarray) -> sparse.csr_array:
    """Averages the sets of each image's neighbors."""
    num_images, k = neighbors.shape
    weights = np.full(neighbors.size, 1.0 / k)
    starts = np.arange(0, neighbors.size + 1, k)
    selection = sparse.csr_array(
        (weights, neighbors.ravel(), starts), (num_images, num_images)
    )
    return (selection @ sets).tocsr()


def _jaccard_distances(
    sets: sparse.csr_array, query_rows: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Computes Jaccard distances, float64 `(queries, candidates)`.

    `1 - sum of minima / sum of maxima`.
    """
    distances = np.empty(columns.shape)
    num_queries, k = columns.shape
    for block in row_blocks(num_queries, CANDIDATES_AT_A_TIME // k):
        left, right = np.repeat(query_rows[block], k), columns[block].ravel()
        minima = sets[left].minimum(sets[right]).sum(axis=1)
        # Each set sums to 1, so the maxima sum to 2 minus the minima.
        distances[block] = (1 - minima / (2 - minima)).reshape(-1, k)
    return distances


def _continued(head: PositiveRanks, whole: PositiveRanks) -> PositiveRanks:
    """Extends the ranks of `head` by those of `whole` beyond its `max_rank`."""
    if head.max_rank is None:
        return head
    beyond = whole.ranks > head.max_rank
    owners = np.concatenate([head.owners, whole.owners[beyond]])
    ranks = np.concatenate([head.ranks, whole.ranks[beyond]])
    lengths = np.bincount(owners, minlength=whole.num_queries)
    return PositiveRanks(
        ranks=ranks[np.lexsort((ranks, owners))],
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        num_references=whole.num_references,
        num_positives=whole.num_positives,
    )
