"""Maps ids to the rows of an index."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from keras_dml.checks import require
from keras_dml.embeddings.checks import as_ids, as_unique_ids, check_same_kind
from keras_dml.errors import UsageError


@dataclasses.dataclass(frozen=True)
class IdTable:
    """Stores the id and the input position of each row of an index.

    Args:
        ids: 1D array `(rows,)` of unique integers or strings.
        order: 1D int64 array `(rows,)`, the input position of each row: a
            permutation of `0, 1, 2, ...`.

    Example:

    >>> table = IdTable.of(["b", "a"], 2).take([1, 0])
    >>> table.ids, table.given
    (array(['a', 'b'], dtype='<U1'), array(['b', 'a'], dtype='<U1'))
    """

    ids: np.ndarray
    order: np.ndarray

    @classmethod
    def of(cls, ids: Any, num_rows: int, name: str = "ids") -> Self:
        """Makes the table of rows in input order.

        Args:
            ids: 1D array `(num_rows,)` of unique integers or strings, or
                `None` for `0, 1, 2, ...`.
            num_rows: Integer.
            name: String, the name of the argument in errors. Defaults to
                `"ids"`.

        Raises:
            UsageError: If an id repeats, or length or dtype is wrong.
        """
        return cls(as_unique_ids(ids, num_rows, name), np.arange(num_rows))

    @classmethod
    def stored(cls, arrays: Mapping[str, np.ndarray], num_rows: int) -> Self:
        """Makes the table of a saved index from its `ids` and `order`."""
        return cls(as_ids(arrays["ids"], num_rows, "ids"), arrays["order"])

    @property
    def given(self) -> np.ndarray:
        """The ids in input order."""
        return self.ids[np.argsort(self.order)]

    def rows_of(self, ids: Any, num_ids: int, name: str) -> np.ndarray:
        """Returns the row of each id, or -1 if the id is unknown.

        Args:
            ids: 1D array `(num_ids,)` of integers or strings, or `None` to
                return -1 everywhere.
            num_ids: Integer.
            name: String, the name of the argument in errors.
        """
        if ids is None:
            return np.full(num_ids, -1)
        wanted = as_ids(ids, num_ids, name)
        check_same_kind(wanted, self.ids, name, "ids")
        places = np.searchsorted(self.ids, wanted, sorter=self._by_id)
        rows = self._by_id[np.minimum(places, len(self.ids) - 1)]
        return np.where(self.ids[rows] == wanted, rows, -1)

    def rows_of_lists(self, lists: np.ndarray, name: str) -> np.ndarray:
        """Returns the rows of lists of ids, as `rows_of`, in their shape."""
        rows = self.rows_of(lists.ravel(), lists.size, name)
        return rows.reshape(lists.shape)

    def without(self, ids: Any) -> np.ndarray:
        """Returns the rows without those of some ids, in ascending order.

        Raises:
            UsageError: If an id is unknown, or no row would remain.
        """
        gone = np.unique(as_ids(ids, len(np.atleast_1d(ids)), "ids"))
        rows = self.rows_of(gone, len(gone), "ids")
        unknown = gone[rows < 0].tolist()
        require(not unknown, "ids", "in the index", unknown, "Leave them out.")
        if len(rows) == len(self.ids):
            raise UsageError(
                "`ids` must leave a reference in the index. Received: all "
                f"{len(rows)} of them. Build another index instead."
            )
        return np.delete(np.arange(len(self.ids)), rows)

    def extended(self, ids: Any, num_rows: int) -> Self:
        """Returns the table with more rows at its end.

        Raises:
            UsageError: If `ids` is `None`, an id repeats, or the table has
                an id already.
        """
        named = ids is not None
        require(named, "ids", "given", ids, "Give each added row a new id.")
        more = type(self).of(ids, num_rows)
        present = self.rows_of(more.ids, num_rows, "ids") >= 0
        known = more.ids[present].tolist()
        advice = "Remove them first, or choose other ids."
        require(not known, "ids", "new to the index", known, advice)
        return type(self)(
            np.concatenate([self.ids, more.ids]),
            np.concatenate([self.order, len(self.ids) + more.order]),
        )

    def take(self, rows: Any) -> Self:
        """Returns the table of some distinct rows, in the order of `rows`."""
        order = np.argsort(np.argsort(self.order[rows], kind="stable"))
        return type(self)(self.ids[rows], order)

    @functools.cached_property
    def _by_id(self) -> np.ndarray:
        return np.argsort(self.ids, kind="stable")
