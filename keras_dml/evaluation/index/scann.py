"""Approximate search by ScaNN."""

import dataclasses
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self, final

import numpy as np

from keras_dml.checks import in_interval, one_of, optional, positive_integer
from keras_dml.errors import UsageError
from keras_dml.evaluation.blocks import row_blocks
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.index import scann_files
from keras_dml.evaluation.index.base import ARRAYS, Index, check_weights_hash
from keras_dml.evaluation.index.exact import ExactIndex
from keras_dml.evaluation.index.scann_searcher import (
    SHAPES,
    ScannSearcher,
    ScannShape,
    import_scann,
    scann_distance,
)
from keras_dml.evaluation.index.spaces import METRICS, Space

MIN_REORDERED = 100
COUNTS = ("num_leaves", "leaves_to_search", "reorder", "dimensions_per_block")
QUERIES_PER_BLOCK = 2**13


@final
@dataclasses.dataclass(eq=False, repr=False)
class ScannIndex(Index):
    """Finds most of the nearest references, much faster than exact search.

    `build` chooses the shape of the index by the number of references, as
    ScaNN's own rules say: brute force below 20,000; below 100,000 asymmetric
    hashing, whose best candidates are scored again in float32; beyond that a
    tree of about `sqrt(n)` leaves in front of the hashing. `add` and `remove`
    keep the shape and its training, so build again when most references are
    new.

    The same references train the same index. Scores equal those of float32
    except for their last bits. Equal scores in a list are ordered by id,
    smaller first. If several equal references compete for the last place of a
    list, ScaNN chooses one.

    Args:
        metric: `"cosine"` (by unit rows), `"euclidean"` (scores are negative
            squared distances) or `"dot"`. Defaults to `"cosine"`.
        shape: `"brute_force"`, `"hashing"`, `"tree"`, or `None` to choose by
            the number of references. Fewer than 16 references are always
            searched by brute force. Defaults to `None`.
        num_leaves: Integer, the number of leaves of the tree, or `None` for
            the square root of the number of references. A number requests a
            tree. Defaults to `None`.
        leaves_to_search: Integer, how many leaves a query searches, or `None`
            for a tenth of them. Defaults to `None`.
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

    metric: str = "cosine"
    shape: str | None = None
    num_leaves: int | None = None
    leaves_to_search: int | None = None
    reorder: int | None = None
    dimensions_per_block: int = 2
    anisotropic_threshold: float = 0.2
    weights_hash: str | None = None

    def __post_init__(self) -> None:
        one_of("metric", self.metric, METRICS)
        one_of("shape", self.shape, (*SHAPES, None))
        if self.num_leaves is not None and self.shape not in (None, "tree"):
            raise UsageError(
                "`num_leaves` is for a tree. Received: "
                f"num_leaves={self.num_leaves} with shape={self.shape!r}. "
                "Leave one of them out."
            )
        for name in COUNTS:
            count = optional(positive_integer, name, getattr(self, name))
            setattr(self, name, count)
        self.anisotropic_threshold = in_interval(
            "anisotropic_threshold",
            self.anisotropic_threshold,
            0,
            1,
            closed="left",
            advice="ScaNN's guide uses 0.2.",
        )
        import_scann()

    @property
    def exact(self) -> bool:
        """Whether ScaNN compares a query with every reference in float32."""
        return self.trained_shape.name == "brute_force"

    @property
    def trained_shape(self) -> ScannShape:
        """The shape that `build` chose."""
        self._built_space()
        return self._searcher.shape

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

        A query whose leaves hold too few references searches all leaves, so
        that no list is short.

        Args:
            queries: Array `(num_queries, dim)`.
            k: Integer; if it exceeds the number of references, all are
                returned.
            exclude_ids: 1D array `(num_queries,)`, for each query the id of
                the reference that it must not find. Defaults to `None`, which
                excludes nothing.
            leaves_to_search: Integer, replaces the value of the index.
                Defaults to `None`, which keeps it.
            reorder: Integer, replaces the value of the index. Defaults to
                `None`, which keeps it.

        Returns:
            Tuple `(ids, scores)` of arrays `(num_queries, k)`, as those of
            `Index.search`.
        """
        optional(positive_integer, "leaves_to_search", leaves_to_search)
        optional(positive_integer, "reorder", reorder)
        search = functools.partial(
            self._search,
            leaves_to_search=leaves_to_search or self.leaves_to_search,
            reorder=reorder or self.reorder,
        )
        return self._lists(queries, k, exclude_ids, search)

    def to_exact(self) -> ExactIndex:
        """Returns an `ExactIndex` of the same references.

        ScaNN writes them to a temporary file first, so the folder for
        temporary files must have room for them.
        """
        space = self._built_space()
        rows = self._searcher.rows()[np.argsort(self._table.order)]
        exact = ExactIndex(self.metric, weights_hash=self.weights_hash)
        return exact.build(rows + space.offset, self.ids)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to a folder, whole or not at all.

        The folder must be new or empty, or hold a saved index, which is
        replaced.
        """
        arrays, settings = self._arrays(), dataclasses.asdict(self)
        scann_files.write_folder(Path(path), self._searcher, settings, **arrays)

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
        searcher, settings, arrays = scann_files.read_folder(Path(path), ARRAYS)
        check_weights_hash(path, settings["weights_hash"], weights_hash)
        index = cls(**settings)
        index._searcher = searcher
        index._table = IdTable.stored(arrays, len(searcher))
        index._space = Space(index.metric, arrays["offset"])
        return index

    def _take(self, rows: np.ndarray, table: IdTable, space: Space) -> None:
        self._searcher = ScannSearcher.train(
            rows,
            scann_distance(self.metric),
            ScannShape.choose(len(rows), self.shape, self.num_leaves),
            dimensions_per_block=self.dimensions_per_block,
            anisotropic_threshold=self.anisotropic_threshold,
        )
        self._space, self._table = space, table

    def _append(self, rows: np.ndarray, table: IdTable) -> None:
        self._searcher.append(rows)
        self._table = table

    def _keep(self, kept: np.ndarray) -> None:
        rows = np.arange(len(self._searcher))
        # The last row takes the number of a deleted row. Deleting from the
        # end keeps the numbers of the rows that are still to be deleted.
        for row in np.setdiff1d(rows, kept)[::-1].tolist():
            self._searcher.delete(row)
            rows[row] = rows[-1]
            rows = rows[:-1]
        self._table = self._table.take(rows)

    def _search(
        self,
        queries: np.ndarray,
        k: int,
        own: np.ndarray,
        leaves_to_search: int | None = None,
        reorder: int | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        space, searcher = self._built_space(), self._searcher
        shape = searcher.shape
        # One more, because ScaNN may return the excluded row.
        wanted = min(k + int((own >= 0).any()), len(searcher))
        reorder = max(reorder or max(MIN_REORDERED, 4 * k), wanted)
        leaves = leaves_to_search or shape.default_leaves_to_search
        for block in row_blocks(len(queries), QUERIES_PER_BLOCK):
            rows, scores = searcher.search(
                space.transform(queries[block]), wanted, leaves, reorder
            )
            if self.metric == "euclidean":
                scores = np.minimum(-scores, np.float32(0))
            scores[rows == own[block, None]] = -np.inf
            ids = self._table.ids[rows]
            # Adding zero turns -0.0 into 0.0.
            scores = scores + np.float32(0)
            order = np.lexsort((ids, -scores), axis=-1)[:, :k]
            yield (
                np.take_along_axis(ids, order, axis=1),
                np.take_along_axis(scores, order, axis=1),
            )
