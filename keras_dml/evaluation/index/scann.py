"""Approximate search by ScaNN."""

import os
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from keras_dml.embeddings.checks import (
    as_counts,
    as_embeddings,
    as_ids,
)
from keras_dml.errors import UsageError
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.index import scann_files
from keras_dml.evaluation.index.base import Index, check_weights_hash
from keras_dml.evaluation.index.exact import ExactIndex
from keras_dml.evaluation.index.scann_searcher import (
    ScannSearcher,
    ScannShape,
    check_shape,
    import_scann,
)
from keras_dml.evaluation.index.spaces import Space, check_metric

MIN_REORDERED = 100
QUERIES_PER_BLOCK = 2**13


@final
class ScannIndex(Index):
    """Finds most of the nearest references in a fraction of the time.

    ScaNN's shape follows its own rules by the number of references: brute
    force below 20,000, asymmetric hashing whose best candidates are scored
    again in float32 below 100,000, and a tree of about `sqrt(n)` leaves in
    front of that beyond. `build` decides. `add` and `remove` keep the shape
    and what it was trained on, so build again when most references are new.

    The same references train the same index. Scores are those of float32 up
    to their last bits. Equal scores in a list are ordered by id, smaller
    first; which of several equal references a list ends with is ScaNN's
    choice.

    Args:
        metric: `"cosine"` (by unit rows), `"euclidean"` (scores are negative
            squared distances) or `"dot"`. Defaults to `"cosine"`.
        shape: `"brute_force"`, `"hashing"`, `"tree"`, or `None` to go by the
            number of references. Fewer than 16 references are always searched
            by brute force. Defaults to `None`.
        num_leaves: Integer, the leaves of the tree, or `None` for the square
            root of the number of references. Asks for a tree. Defaults to
            `None`.
        leaves_to_search: Integer, how many leaves a query looks into, or
            `None` for a tenth of them. Defaults to `None`.
        reorder: Integer, how many candidates are scored again in float32, or
            `None` for four times `k` and at least 100. Never fewer than `k`.
            Defaults to `None`.
        dimensions_per_block: Integer, how many dimensions share a hash.
            Defaults to `2`.
        anisotropic_threshold: Float, the threshold of the anisotropic hashing
            loss. Defaults to `0.2`.
        weights_hash: String, the hash of the weights that made the
            embeddings, saved with the index; `None` when unknown. Defaults to
            `None`.

    Raises:
        UsageError: If ScaNN cannot be loaded. It runs on Linux only, and
            `pip install 'keras-dml[scann]'` installs it.

    Example:

    >>> index = ScannIndex().build([[1.0, 0.0], [0.0, 1.0]], ["right", "up"])
    >>> index.search([[2.0, 1.0]], k=2)[0]
    array([['right', 'up']], dtype='<U5')

    Reference:
        Guo et al., "Accelerating Large-Scale Inference with Anisotropic
        Vector Quantization", 2020.
    """

    name = "scann"

    def __init__(
        self,
        metric: str = "cosine",
        shape: str | None = None,
        num_leaves: int | None = None,
        leaves_to_search: int | None = None,
        reorder: int | None = None,
        dimensions_per_block: int = 2,
        anisotropic_threshold: float = 0.2,
        weights_hash: str | None = None,
    ) -> None:
        check_metric(metric)
        check_shape(shape, num_leaves)
        _check_count(num_leaves, "num_leaves")
        _check_count(leaves_to_search, "leaves_to_search")
        _check_count(reorder, "reorder")
        _check_count(dimensions_per_block, "dimensions_per_block")
        if not 0 <= anisotropic_threshold < 1:
            raise UsageError(
                "`anisotropic_threshold` must be at least 0 and less than 1. "
                f"Received: anisotropic_threshold={anisotropic_threshold}. "
                "ScaNN's guide uses 0.2."
            )
        import_scann()
        self.metric = metric
        self.shape = shape
        self.num_leaves = num_leaves
        self.leaves_to_search = leaves_to_search
        self.reorder = reorder
        self.dimensions_per_block = dimensions_per_block
        self.anisotropic_threshold = anisotropic_threshold
        self.weights_hash = weights_hash
        self._searcher: ScannSearcher | None = None

    @property
    def exact(self) -> bool:
        """Whether ScaNN compares a query with every reference in float32."""
        return self.trained_shape.name == "brute_force"

    @property
    def trained_shape(self) -> ScannShape:
        """The shape that `build` chose."""
        return self._built_searcher().shape

    @property
    def ids(self) -> np.ndarray:
        self._built_searcher()
        return self._table.given

    def build(self, embeddings: Any, ids: Any = None) -> Self:
        rows = as_embeddings(embeddings)
        table = IdTable.of(ids, len(rows))
        space = Space.fit(rows, self.metric)
        self._searcher = ScannSearcher.train(
            space.transform(rows),
            "squared_l2" if self.metric == "euclidean" else "dot_product",
            ScannShape.choose(len(rows), self.shape, self.num_leaves),
            self.dimensions_per_block,
            self.anisotropic_threshold,
        )
        self._space, self._table = space, table
        return self

    def add(self, embeddings: Any, ids: Any) -> Self:
        searcher = self._built_searcher()
        rows = as_embeddings(embeddings, dim=len(self._space.offset))
        table = self._table.extended(ids, len(rows))
        searcher.append(self._space.transform(rows))
        self._table = table
        return self

    def remove(self, ids: Any) -> Self:
        searcher = self._built_searcher()
        kept = self._table.without(ids)
        rows = np.arange(len(searcher))
        # From the end, so that no row to delete takes another's number.
        for row in np.setdiff1d(rows, kept)[::-1].tolist():
            searcher.delete(row)
            rows[row] = rows[-1]
            rows = rows[:-1]
        self._table = self._table.take(rows)
        return self

    def search(
        self,
        queries: Any,
        k: int,
        exclude_ids: Any = None,
        *,
        leaves_to_search: int | None = None,
        reorder: int | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds most of the `k` nearest references of each query.

        A query whose leaves hold too few references looks into all of them,
        so that no list is short.

        Args:
            queries: Array `(num_queries, dim)`.
            k: Integer; more than there are references gives all of them.
            exclude_ids: 1D array `(num_queries,)`, for each query the id of
                the reference that it may not find. Defaults to `None`, which
                excludes nothing.
            leaves_to_search: Integer, in place of that of the index. Defaults
                to `None`.
            reorder: Integer, in place of that of the index. Defaults to
                `None`.

        Returns:
            Tuple `(ids, scores)` of arrays `(num_queries, k)`, as those of
            `Index.search`.
        """
        self._built_searcher()
        _check_count(leaves_to_search, "leaves_to_search")
        _check_count(reorder, "reorder")
        queries = as_embeddings(queries, "queries", len(self._space.offset))
        k = min(as_counts(k)[0], len(self._table.ids))
        own = None
        if exclude_ids is not None:
            own = self._table.rows_of(exclude_ids, len(queries), "exclude_ids")
        ids = np.empty((len(queries), k), self._table.ids.dtype)
        scores = np.empty((len(queries), k), np.float32)
        for start in range(0, len(queries), QUERIES_PER_BLOCK):
            block = slice(start, start + QUERIES_PER_BLOCK)
            ids[block], scores[block] = self._search_block(
                self._space.transform(queries[block]),
                k,
                None if own is None else own[block],
                leaves_to_search or self.leaves_to_search,
                reorder or self.reorder,
            )
        return ids, scores

    def to_exact(self) -> ExactIndex:
        """An `ExactIndex` of the same references, by way of the disk.

        The folder for temporary files must have room for the references.
        """
        rows = self._built_searcher().rows()[np.argsort(self._table.order)]
        exact = ExactIndex(self.metric, weights_hash=self.weights_hash)
        return exact.build(rows + self._space.offset, self.ids)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to a folder, whole or not at all.

        The folder must be new, empty, or an index that it replaces.
        """
        scann_files.write_folder(
            Path(path),
            self._built_searcher(),
            {
                "metric": self.metric,
                "shape": self.shape,
                "num_leaves": self.num_leaves,
                "leaves_to_search": self.leaves_to_search,
                "reorder": self.reorder,
                "dimensions_per_block": self.dimensions_per_block,
                "anisotropic_threshold": self.anisotropic_threshold,
                "weights_hash": self.weights_hash,
            },
            ids=self._table.ids,
            order=self._table.order,
            offset=self._space.offset,
        )

    @classmethod
    def check_available(cls) -> None:
        import_scann()

    @classmethod
    def recognizes(cls, path: str | os.PathLike[str]) -> bool:
        return os.path.isdir(path)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], weights_hash: str | None = None
    ) -> Self:
        searcher, settings, arrays = scann_files.read_folder(
            Path(path), ("ids", "order", "offset")
        )
        check_weights_hash(path, settings["weights_hash"], weights_hash)
        index = cls(**settings)
        index._searcher = searcher
        index._space = Space(index.metric, arrays["offset"])
        ids = as_ids(arrays["ids"], len(searcher), "ids")
        index._table = IdTable(ids, arrays["order"])
        return index

    def _built_searcher(self) -> ScannSearcher:
        if self._searcher is None:
            raise UsageError(
                "The index must be built before it is used. Received: an "
                "empty `ScannIndex`. Call `build(embeddings, ids)` first."
            )
        return self._searcher

    def _search_block(
        self,
        queries: np.ndarray,
        k: int,
        own: np.ndarray | None,
        leaves_to_search: int | None,
        reorder: int | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ids and scores of transformed queries."""
        searcher = self._built_searcher()
        # One more where a query may find the row that it is kept from.
        wanted = k if own is None else min(k + 1, len(searcher))
        reorder = max(reorder or max(MIN_REORDERED, 4 * k), wanted)
        shape = searcher.shape
        leaves = leaves_to_search or shape.default_leaves_to_search
        rows, distances = searcher.search(queries, wanted, leaves, reorder)
        short = np.isnan(distances).any(axis=1)
        if short.any():
            rows[short], distances[short] = searcher.search(
                queries[short], wanted, shape.num_leaves, reorder
            )
        # Adding zero turns -0.0 into 0.0.
        scores = distances + np.float32(0)
        if self.metric == "euclidean":
            scores = np.minimum(-distances, np.float32(0))
        if own is not None:
            scores[rows == own[:, None]] = -np.inf
        ids = self._table.ids[rows]
        order = np.lexsort((ids, -scores), axis=-1)[:, :k]
        return (
            np.take_along_axis(ids, order, axis=1),
            np.take_along_axis(scores, order, axis=1),
        )


def _check_count(value: int | None, name: str) -> None:
    if value is not None:
        as_counts(value, name)
