"""Exact search by blocks of the matrix product."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, final

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.evaluation import storage
from keras_dml.evaluation.duplicates import duplicate_rows
from keras_dml.evaluation.index import Index
from keras_dml.evaluation.positive_ranks import PositiveRanks, rows_of_ids
from keras_dml.evaluation.ranking import nearest, ranks_of
from keras_dml.evaluation.spaces import METRICS, Space
from keras_dml.evaluation.validation import (
    as_counts,
    as_embeddings,
    as_ids,
    as_labels,
    check_same_kind,
)

# Below so many scores starting threads costs more than it brings.
MIN_SCORES_FOR_THREADS = 2**20
ROWS_PER_TASK = 32


@final
class ExactIndex(Index):
    """Compares each query with every reference, in float32 and bounded memory.

    Equal scores are ordered by id, smaller first, and references with equal
    embeddings always have equal scores: neither the order of the references
    nor the size of the blocks decides between them. Different embeddings whose
    scores agree to the last bits of float32 may still change places with
    `block_bytes`, because a matrix product rounds by its shape.

    Args:
        metric: `"cosine"` (a zero row scores 0 with everything),
            `"euclidean"` (scores are negative squared distances) or `"dot"`.
            Defaults to `"cosine"`.
        block_bytes: Integer, the memory for scores. Defaults to 256 MiB.
        weights_hash: String, the hash of the weights that made the
            embeddings, saved with the index; `None` when unknown. Defaults to
            `None`.

    Example:

    >>> index = ExactIndex().build([[1.0, 0.0], [0.0, 1.0]], ["right", "up"])
    >>> index.search([[2.0, 1.0]], k=2)[0]
    array([['right', 'up']], dtype='<U5')
    """

    def __init__(
        self,
        metric: str = "cosine",
        block_bytes: int = 2**28,
        weights_hash: str | None = None,
    ) -> None:
        if metric not in METRICS:
            raise UsageError(
                f"`metric` must be one of {METRICS}. "
                f"Received: metric={metric!r}. Choose one of them."
            )
        if block_bytes < 1:
            raise UsageError(
                "`block_bytes` must be positive. "
                f"Received: block_bytes={block_bytes}. Give some memory."
            )
        self.metric = metric
        self.block_bytes = block_bytes
        self.weights_hash = weights_hash
        self._space: Space | None = None

    @property
    def exact(self) -> bool:
        return True

    @property
    def ids(self) -> np.ndarray:
        self._built_space()
        ids = np.empty_like(self._ids)
        ids[self._order] = self._ids
        return ids

    def build(self, embeddings: Any, ids: Any = None) -> Self:
        rows = as_embeddings(embeddings)
        ids = as_ids(ids, len(rows), "ids")
        order = np.argsort(ids, kind="stable")
        rows_of_ids(ids[order], ids[:0])
        if (order[1:] < order[:-1]).any():
            rows = rows[order]
        space = Space.fit(rows, self.metric)
        self._set(space, space.transform(rows), ids[order], order)
        return self

    def search(
        self, queries: Any, k: int, exclude_ids: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        space = self._built_space()
        queries = as_embeddings(queries, "queries", self._rows.shape[1])
        own = self._rows_of(exclude_ids, len(queries), "exclude_ids")
        k = min(as_counts(k)[0], len(self._rows))
        ids = np.empty((len(queries), k), self._ids.dtype)
        scores = np.empty((len(queries), k), np.float32)
        for start, block, transformed in self._score_blocks(queries, own):
            columns = np.stack(_map_rows(lambda row: nearest(row, k), block))
            stop = start + len(block)
            ids[start:stop] = self._ids[columns]
            raw = np.take_along_axis(block, columns, axis=1)
            scores[start:stop] = space.public_scores(raw, transformed)
        return ids, scores

    def positive_ranks(
        self,
        queries: Any,
        query_labels: Any,
        reference_labels: Any,
        query_ids: Any = None,
        max_rank: int | None = None,
    ) -> PositiveRanks:
        """Ranks at which each query finds the references of its class.

        Args:
            queries: Array `(num_queries, dim)`.
            query_labels: 1D array `(num_queries,)` of integers or strings.
            reference_labels: 1D array `(num_references,)`, in the order that
                `build` received.
            query_ids: 1D array `(num_queries,)`; the reference with the id of
                a query is the query itself and takes no rank. Defaults to
                `None`: nothing is left out.
            max_rank: Integer, drops ranks beyond it, or `None` to keep all.
                Defaults to `None`.

        Returns:
            `PositiveRanks`.

        Raises:
            UsageError: If shapes or dtypes do not match.
        """
        return PositiveRanks.concatenate(
            list(
                self.positive_rank_blocks(
                    queries, query_labels, reference_labels, query_ids, max_rank
                )
            )
        )

    def positive_rank_blocks(
        self,
        queries: Any,
        query_labels: Any,
        reference_labels: Any,
        query_ids: Any = None,
        max_rank: int | None = None,
    ) -> Iterator[PositiveRanks]:
        """Yields `positive_ranks` by blocks of queries, in bounded memory.

        The arguments are those of `positive_ranks`.
        """
        self._built_space()
        queries = as_embeddings(queries, "queries", self._rows.shape[1])
        own = self._rows_of(query_ids, len(queries), "query_ids")
        labels = as_labels(query_labels, len(queries), "query_labels")
        gallery = as_labels(
            reference_labels, len(self._rows), "reference_labels"
        )[self._order]
        check_same_kind(labels, gallery, "query_labels", "reference_labels")
        if max_rank is not None:
            (max_rank,) = as_counts(max_rank, "max_rank")
        by_label = np.argsort(gallery, kind="stable")
        starts = np.searchsorted(gallery[by_label], labels, "left")
        stops = np.searchsorted(gallery[by_label], labels, "right")
        for start, block, _ in self._score_blocks(queries, own):
            columns = []
            for query in range(start, start + len(block)):
                same_label = by_label[starts[query] : stops[query]]
                columns.append(same_label[same_label != own[query]])
            ranks = _map_rows(ranks_of, block, columns)
            yield _gather(ranks, len(self._rows), max_rank)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to an `.npz` file, whole or not at all.

        Its `embeddings` and `ids` belong together row by row; `order` leads
        back to the order in which `build` received them.
        """
        space = self._built_space()
        storage.write_npz(
            path,
            embeddings=self._rows,
            ids=self._ids,
            order=self._order,
            offset=space.offset,
            metric=self.metric,
            weights_hash=self.weights_hash or "",
        )

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], weights_hash: str | None = None
    ) -> Self:
        arrays = storage.read_npz(
            path,
            ("embeddings", "ids", "order", "offset", "metric", "weights_hash"),
        )
        stored = str(arrays["weights_hash"]) or None
        storage.check_weights_hash(path, stored, weights_hash)
        index = cls(str(arrays["metric"]), weights_hash=stored)
        rows = as_embeddings(arrays["embeddings"])
        ids = as_ids(arrays["ids"], len(rows), "ids")
        space = Space(index.metric, arrays["offset"])
        index._set(space, rows, ids, arrays["order"])
        return index

    def _set(
        self,
        space: Space,
        rows: np.ndarray,
        ids: np.ndarray,
        order: np.ndarray,
    ) -> None:
        self._space, self._rows = space, rows
        self._ids, self._order = ids, order
        self._biases = space.biases(rows)
        self._duplicates, self._originals = duplicate_rows(rows)

    def _built_space(self) -> Space:
        if self._space is None:
            raise UsageError(
                "The index must be built before it is used. Received: an "
                "empty `ExactIndex`. Call `build(embeddings, ids)` first."
            )
        return self._space

    def _rows_of(self, ids: Any, num_queries: int, name: str) -> np.ndarray:
        if ids is None:
            return np.full(num_queries, -1)
        wanted = as_ids(ids, num_queries, name)
        return rows_of_ids(self._ids, wanted)

    def _score_blocks(
        self, queries: np.ndarray, own: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yields (first query, raw scores, transformed queries)."""
        space = self._built_space()
        num_references = len(self._rows)
        size = max(1, self.block_bytes // (4 * num_references))
        size = min(size, len(queries))
        buffer = np.empty((size, num_references), np.float32)
        for start in range(0, len(queries), size):
            block = space.transform(queries[start : start + size])
            scores = buffer[: len(block)]
            np.matmul(block, self._rows.T, out=scores)
            if self._biases is not None:
                scores -= self._biases
            scores[:, self._duplicates] = scores[:, self._originals]
            own_rows = own[start : start + size]
            excluded = np.flatnonzero(own_rows >= 0)
            scores[excluded, own_rows[excluded]] = -np.inf
            yield start, scores, block


def _map_rows(function: Callable, *sequences: Any) -> list:
    """Maps over rows in threads: numpy lets them run while it works."""
    scores = sequences[0]
    if scores.size < MIN_SCORES_FOR_THREADS:
        return list(map(function, *sequences))

    def run(start: int) -> list:
        stop = start + ROWS_PER_TASK
        return list(map(function, *(rows[start:stop] for rows in sequences)))

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = pool.map(run, range(0, len(scores), ROWS_PER_TASK))
        return [result for part in parts for result in part]


def _gather(
    ranks: list[np.ndarray], num_references: int, max_rank: int | None
) -> PositiveRanks:
    counts = np.array([len(row) for row in ranks], np.int64)
    if max_rank is not None:
        ranks = [row[row <= max_rank] for row in ranks]
    lengths = [len(row) for row in ranks]
    return PositiveRanks(
        ranks=np.concatenate(ranks),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        num_references=num_references,
        num_positives=counts,
        max_rank=max_rank,
    )
