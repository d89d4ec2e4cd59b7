"""The base class of search indexes."""

import abc
import os
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import positive_integer
from keras_dml.embeddings.checks import as_embeddings
from keras_dml.errors import UsageError
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.index.spaces import Space

ARRAYS = ("ids", "order", "offset")


class Index(Brief, abc.ABC):
    """Finds the references nearest to a query.

    `build` takes the references, `add` and `remove` change them, and `search`
    answers queries. A larger score is nearer in every index.

    `make_index` finds each subclass in this package by its `name`. An index
    keeps rows that are ready for a dot product, in the order of its
    `IdTable`.

    Attributes:
        name: The name for `make_index`.
        metric: `"cosine"`, `"euclidean"` or `"dot"`.
        weights_hash: The hash of the weights that made the embeddings, or
            `None`.
    """

    name: ClassVar[str]
    metric: str
    weights_hash: str | None
    _space: Space | None = None
    _table: IdTable

    @classmethod
    def check_available(cls) -> None:
        """Raises a `UsageError` if the index cannot be loaded here."""

    @classmethod
    @abc.abstractmethod
    def recognizes(cls, path: str | os.PathLike[str]) -> bool:
        """Returns whether `load` of this class reads this path."""

    @property
    @abc.abstractmethod
    def exact(self) -> bool:
        """Whether `search` never misses a nearest reference."""

    @property
    def ids(self) -> np.ndarray:
        """The ids of the references, in input order."""
        self._built_space()
        return self._table.given

    def build(self, embeddings: Any, ids: Any = None) -> Self:
        """Builds the index of the references and drops any earlier ones.

        Args:
            embeddings: Array `(num_references, dim)`.
            ids: 1D array `(num_references,)` of unique integers or strings,
                or `None` for `0, 1, 2, ...`. Defaults to `None`.

        Returns:
            The index itself.
        """
        rows = as_embeddings(embeddings)
        table = IdTable.of(ids, len(rows))
        space = Space.fit(rows, self.metric)
        self._take(space.transform(rows), table, space)
        return self

    def add(self, embeddings: Any, ids: Any) -> Self:
        """Adds references; this takes a pass over all references.

        Args:
            embeddings: Array `(num_added, dim)`.
            ids: 1D array `(num_added,)` of ids that the index does not have.

        Returns:
            The index itself.

        Raises:
            UsageError: If the index has an id already, or cannot add
                references; the index is then unchanged.
        """
        space = self._built_space()
        rows = as_embeddings(embeddings, dim=len(space.offset))
        table = self._table.extended(ids, len(rows))
        self._append(space.transform(rows), table)
        return self

    def remove(self, ids: Any) -> Self:
        """Removes references; this takes a pass over all that remain.

        Args:
            ids: 1D array of ids that the index has. At least one reference
                must remain.

        Returns:
            The index itself.

        Raises:
            UsageError: If an id is unknown, no reference would remain, or the
                index cannot remove references; the index is then unchanged.
        """
        self._built_space()
        self._keep(self._table.without(ids))
        return self

    def search(
        self, queries: Any, k: int, exclude_ids: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Finds the `k` nearest references of each query.

        Args:
            queries: Array `(num_queries, dim)`.
            k: Integer; if it exceeds the number of references, all are
                returned.
            exclude_ids: 1D array `(num_queries,)`, for each query the id of
                the reference that it must not find, usually its own. Defaults
                to `None`, which excludes nothing.

        Returns:
            Tuple `(ids, scores)` of arrays `(num_queries, k)`, nearest first.
            In a list of all references the excluded one comes last, with the
            score minus infinity.
        """
        return self._lists(queries, k, exclude_ids, self._search)

    def _lists(
        self, queries: Any, k: int, exclude_ids: Any, search: Callable
    ) -> tuple[np.ndarray, np.ndarray]:
        """Joins the blocks that a `_search` yields."""
        space = self._built_space()
        queries = as_embeddings(queries, "queries", len(space.offset))
        own = self._table.rows_of(exclude_ids, len(queries), "exclude_ids")
        k = min(positive_integer("k", k), len(self._table.ids))
        ids = np.empty((len(queries), k), self._table.ids.dtype)
        scores = np.empty((len(queries), k), np.float32)
        start = 0
        for found in search(queries, k, own):
            block = slice(start, start + len(found[0]))
            ids[block], scores[block] = found
            start = block.stop
        return ids, scores

    @abc.abstractmethod
    def to_exact(self) -> "Index":
        """Returns an exact index of the same references, for comparison."""

    @abc.abstractmethod
    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index, whole or not at all."""

    @classmethod
    @abc.abstractmethod
    def load(
        cls, path: str | os.PathLike[str], weights_hash: str | None = None
    ) -> Self:
        """Reads what `save` wrote.

        Args:
            path: Where the index was saved.
            weights_hash: String, the hash of the weights that embed the
                queries. Defaults to `None`, which checks nothing.

        Raises:
            UsageError: If other weights made the index.
        """

    def _arrays(self) -> dict[str, np.ndarray]:
        """Returns the arrays `ARRAYS`, which `save` writes for all indexes."""
        space = self._built_space()
        return {
            "ids": self._table.ids,
            "order": self._table.order,
            "offset": space.offset,
        }

    @abc.abstractmethod
    def _take(self, rows: np.ndarray, table: IdTable, space: Space) -> None:
        """Stores transformed rows, their ids and space; drops earlier ones."""

    @abc.abstractmethod
    def _append(self, rows: np.ndarray, table: IdTable) -> None:
        """Appends transformed rows; `table` holds the ids of all rows."""

    @abc.abstractmethod
    def _keep(self, kept: np.ndarray) -> None:
        """Keeps these ascending rows and drops all others."""

    @abc.abstractmethod
    def _search(
        self, queries: np.ndarray, k: int, own: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields ids and scores, one block of queries at a time.

        Args:
            queries: Float32 array `(num_queries, dim)`, not transformed.
            k: Integer, at most the number of references.
            own: Int64 array `(num_queries,)`, the row that a query must not
                find, or -1.
        """

    def _built_space(self) -> Space:
        if self._space is None:
            raise UsageError(
                "The index must be built before it is used. Received: an "
                f"empty `{type(self).__name__}`. Call `build(embeddings, ids)` "
                "first."
            )
        return self._space

    def _brief_title(self) -> str:
        kind = type(self).__name__
        if self._space is None:
            return f"{kind}: empty, by {self.metric}"
        return (
            f"{kind}: {len(self._table.ids):,} references of "
            f"{len(self._space.offset)} dimensions, by {self.metric}"
        )


def check_weights_hash(
    path: str | os.PathLike[str], stored: str | None, wanted: str | None
) -> None:
    """Raises if the hash of the stored weights is not the wanted one."""
    if stored is not None and wanted is not None and stored != wanted:
        raise UsageError(
            "`weights_hash` must be that of the weights which made "
            f"{os.fspath(path)!r} ({stored}). Received: {wanted}. Embed the "
            "images again with the present weights."
        )
