"""Exact search, by a matrix product in blocks."""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any, Self, final

import numpy as np

from keras_dml.checks import one_of, positive_integer
from keras_dml.embeddings.checks import as_embeddings, as_unique_ids
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.index.base import ARRAYS, Index, check_weights_hash
from keras_dml.evaluation.index.ranking import map_rows, nearest, ranks_of
from keras_dml.evaluation.index.spaces import (
    METRICS,
    Space,
    duplicate_rows,
    sharpen,
)
from keras_dml.evaluation.labels import Relevance
from keras_dml.evaluation.metrics.positive_ranks import PositiveRanks
from keras_dml.npz import read_npz, write_npz


@final
@dataclasses.dataclass(eq=False, repr=False)
class ExactIndex(Index):
    """Compares each query with every reference, in float32 and bounded memory.

    Equal scores are ordered by id, smaller first, and references with equal
    embeddings always have equal scores: neither the order of the references
    nor the size of the blocks changes their order. Euclidean distances of up
    to a hundredth of that between a query and the middle of the references
    are computed from the difference of both rows, so an equal reference has
    the score 0. Different embeddings whose scores differ only in the last
    bits of float32 may still change places with `block_bytes`, because the
    shape of a matrix product affects its rounding.

    Args:
        metric: `"cosine"` (a zero row scores 0 with everything),
            `"euclidean"` (scores are negative squared distances) or `"dot"`.
            Defaults to `"cosine"`.
        block_bytes: Integer, the memory for scores in bytes. Defaults to 256
            MiB. Give more beyond about 250,000 references: the product is
            fast in blocks of a few hundred queries or more.
        weights_hash: String, the hash of the weights that made the
            embeddings, saved with the index; `None` when unknown. Defaults to
            `None`.

    Example:

    >>> index = ExactIndex().build([[1.0, 0.0], [0.0, 1.0]], ["right", "up"])
    >>> index.search([[2.0, 1.0]], k=2)[0]
    array([['right', 'up']], dtype='<U5')
    """

    name = "exact"

    metric: str = "cosine"
    block_bytes: int = 2**28
    weights_hash: str | None = None

    def __post_init__(self) -> None:
        one_of("metric", self.metric, METRICS)
        positive_integer("block_bytes", self.block_bytes, "Give some memory.")

    @property
    def exact(self) -> bool:
        return True

    def positive_ranks(
        self,
        queries: Any,
        query_labels: Any,
        reference_labels: Any,
        query_ids: Any = None,
        max_rank: int | None = None,
    ) -> PositiveRanks:
        """Finds the ranks of the references of each query's class.

        Args:
            queries: Array `(num_queries, dim)`.
            query_labels: 1D array `(num_queries,)` of integers or strings, or
                several labels for each query: a boolean matrix
                `(num_queries, classes)` or a list of sets.
            reference_labels: The labels of the references, in the same form
                and in the order of `ids`.
            query_ids: 1D array `(num_queries,)`; the reference with a query's
                own id is skipped. Defaults to `None`: no reference is
                skipped.
            max_rank: Integer, the rank beyond which ranks are dropped, or
                `None` to keep all. Defaults to `None`.

        Returns:
            `PositiveRanks`.

        Raises:
            UsageError: If shapes or dtypes do not match.
        """
        blocks = self.positive_rank_blocks(
            queries, query_labels, reference_labels, query_ids
        )
        if max_rank is not None:
            most = positive_integer("max_rank", max_rank)
            blocks = (block.up_to(most) for block in blocks)
        return PositiveRanks.concatenate(list(blocks))

    def positive_rank_blocks(
        self,
        queries: Any,
        query_labels: Any,
        reference_labels: Any,
        query_ids: Any = None,
    ) -> Iterator[PositiveRanks]:
        """Yields `PositiveRanks` of blocks of queries, in bounded memory.

        The arguments are those of `positive_ranks`.
        """
        for scores, columns in self._labeled_blocks(
            queries, query_labels, reference_labels, query_ids
        ):
            ranks = map_rows(ranks_of, scores, columns)
            lengths = [len(row) for row in ranks]
            yield PositiveRanks(
                ranks=np.concatenate(ranks),
                offsets=np.concatenate([[0], np.cumsum(lengths)]),
                num_references=len(self._rows),
            )

    def nearest_scores(
        self,
        queries: Any,
        query_labels: Any,
        reference_labels: Any,
        query_ids: Any = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the scores of the nearest positive and the nearest negative.

        Args:
            queries: Array `(num_queries, dim)`.
            query_labels: Labels of the queries, as for `positive_ranks`.
            reference_labels: Labels of the references, in the same form and
                in the order of `ids`.
            query_ids: 1D array `(num_queries,)`; the reference with a query's
                own id is skipped. Defaults to `None`: no reference is
                skipped.

        Returns:
            Two float32 arrays `(num_queries,)`: the largest score of a
            reference that shares a label with the query, and of one that does
            not; minus infinity where there is no such reference.

        Raises:
            UsageError: If shapes or dtypes do not match.

        Example:

        >>> index = ExactIndex("dot").build([[1.0, 0.0], [0.0, 1.0]])
        >>> index.nearest_scores([[2.0, 3.0]], ["up"], ["right", "up"])
        (array([3.], dtype=float32), array([2.], dtype=float32))
        """
        positive: list[float] = []
        negative: list[float] = []
        for scores, columns in self._labeled_blocks(
            queries, query_labels, reference_labels, query_ids
        ):
            for row, positives in zip(scores, columns, strict=True):
                positive.append(row[positives].max(initial=-np.inf))
                row[positives] = -np.inf
                negative.append(row.max())
        return np.array(positive, np.float32), np.array(negative, np.float32)

    def to_exact(self) -> "ExactIndex":
        """Returns the index itself."""
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to an `.npz` file, whole or not at all.

        Row `i` of the array `embeddings` has the id `ids[i]`; `order` holds
        the input position of each row.
        """
        write_npz(
            path,
            **self._arrays(),
            embeddings=self._rows,
            metric=self.metric,
            weights_hash=self.weights_hash or "",
        )

    @classmethod
    def recognizes(cls, path: str | os.PathLike[str]) -> bool:
        return not os.path.isdir(path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], weights_hash: str | None = None
    ) -> Self:
        needed = ("embeddings", "metric", "weights_hash", *ARRAYS)
        arrays = read_npz(path, needed)
        stored = str(arrays["weights_hash"]) or None
        check_weights_hash(path, stored, weights_hash)
        index = cls(str(arrays["metric"]), weights_hash=stored)
        rows = as_embeddings(arrays["embeddings"])
        table = IdTable.stored(arrays, len(rows))
        as_unique_ids(table.ids, len(rows))
        index._take(rows, table, Space(index.metric, arrays["offset"]))
        return index

    def _take(self, rows: np.ndarray, table: IdTable, space: Space) -> None:
        order = np.argsort(table.ids, kind="stable")
        if (order[1:] < order[:-1]).any():
            rows, table = rows[order], table.take(order)
        self._space, self._rows, self._table = space, rows, table
        self._biases = space.biases(rows)
        self._duplicates, self._originals = duplicate_rows(rows)

    def _append(self, rows: np.ndarray, table: IdTable) -> None:
        rows = np.concatenate([self._rows, rows])
        self._take(rows, table, self._built_space())

    def _keep(self, kept: np.ndarray) -> None:
        table = self._table.take(kept)
        self._take(self._rows[kept], table, self._built_space())

    def _search(
        self, queries: np.ndarray, k: int, own: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for _, block in self._score_blocks(queries, own):
            columns = np.stack(map_rows(lambda row: nearest(row, k), block))
            scores = np.take_along_axis(block, columns, axis=1)
            yield self._table.ids[columns], scores

    def _labeled_blocks(
        self,
        queries: Any,
        query_labels: Any,
        reference_labels: Any,
        query_ids: Any,
    ) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
        """Yields scores and the columns of positives."""
        self._built_space()
        queries = as_embeddings(queries, "queries", self._rows.shape[1])
        own = self._table.rows_of(query_ids, len(queries), "query_ids")
        relevance = Relevance.of(
            query_labels, len(queries), reference_labels, len(self._rows)
        ).take(self._table.order)
        for start, scores in self._score_blocks(queries, own):
            columns = []
            for query in range(start, start + len(scores)):
                positives = relevance.rows(query)
                columns.append(positives[positives != own[query]])
            yield scores, columns

    def _score_blocks(
        self, queries: np.ndarray, own: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yields the first query of a block, and its scores."""
        space = self._built_space()
        num_references = len(self._rows)
        size = max(1, self.block_bytes // (4 * num_references))
        size = min(size, len(queries))
        buffer = np.empty((size, num_references), np.float32)
        for start in range(0, len(queries), size):
            block = space.transform(queries[start : start + size])
            scores = buffer[: len(block)]
            space.scores(block, self._rows, self._biases, out=scores)
            if space.metric == "euclidean":
                sharpen(scores, block, self._rows)
            scores[:, self._duplicates] = scores[:, self._originals]
            own_rows = own[start : start + size]
            excluded = np.flatnonzero(own_rows >= 0)
            scores[excluded, own_rows[excluded]] = -np.inf
            yield start, scores
