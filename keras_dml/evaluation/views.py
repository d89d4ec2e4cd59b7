"""Searches objects that have several references each."""

from typing import Any, Self

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import boolean, one_of, positive_integer, require
from keras_dml.embeddings.checks import as_embeddings, as_labels
from keras_dml.evaluation.blocks import row_blocks
from keras_dml.evaluation.index.base import Index
from keras_dml.evaluation.index.exact import ExactIndex

MERGES = ("mean", "max")
# Rows of views that are held at once while objects are searched for.
ROWS_PER_BLOCK = 2**22


def merge_views(
    embeddings: Any, objects: Any, normalize: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Averages the embeddings of each object.

    `m_o = mean_i u(x_i)` over the views `i` of an object `o`, `u(v) = v /
    |v|`. Its cosine with a query orders objects by the mean cosine of their
    views, divided by the length of that mean.

    Args:
        embeddings: Array `(num_views, dim)`.
        objects: 1D array `(num_views,)` of integers or strings, the object
            or class that each view shows.
        normalize: Boolean, whether views and means have length 1; otherwise
            the plain mean. Defaults to `True`.

    Returns:
        Tuple `(means, names)`: a float32 array `(num_objects, dim)`, and the
        objects in ascending order.

    Raises:
        UsageError: If the arrays do not match or hold NaN.

    Example:

    >>> means, names = merge_views([[1, 0], [0, 1], [0, 2]], ["a", "a", "b"])
    >>> names
    array(['a', 'b'], dtype='<U1')
    >>> means.round(2)
    array([[0.71, 0.71],
           [0.  , 1.  ]], dtype=float32)
    """
    boolean("normalize", normalize)
    rows = as_embeddings(embeddings)
    names, place, counts = np.unique(
        as_labels(objects, len(rows), "objects"),
        return_inverse=True,
        return_counts=True,
    )
    rows = rows.astype(np.float64)
    sums = np.zeros((len(names), rows.shape[1]))
    np.add.at(sums, place, _unit(rows) if normalize else rows)
    means = sums / counts[:, None]
    return (_unit(means) if normalize else means).astype(np.float32), names


class ViewIndex(Brief):
    """Finds the objects nearest to a query, each by all of its references.

    With `merge="mean"` an object is the mean of its references, see
    `merge_views`: one row each, the smaller and faster index. With
    `merge="max"` it is as near as its nearest reference, which suits objects
    whose views differ, such as a front and a back.

    Args:
        merge: `"mean"` or `"max"`. Defaults to `"mean"`.
        index: Empty `Index` for the rows. Defaults to `None`, an
            `ExactIndex`.

    Raises:
        UsageError: If `merge` is unknown.

    Example:

    >>> views = [[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]]
    >>> index = ViewIndex("max").build(views, ["cup", "cup", "jug"])
    >>> index.search([[0.0, 2.0]], k=1)[0]
    array([['cup']], dtype='<U3')
    """

    def __init__(self, merge: str = "mean", index: Index | None = None):
        self.merge = one_of("merge", merge, MERGES)
        self.index = ExactIndex() if index is None else index
        self._objects: np.ndarray | None = None
        self._most = 1

    @property
    def objects(self) -> np.ndarray:
        """The objects, in ascending order: the ids for `evaluate_lists`."""
        return np.unique(self._built())

    def build(self, embeddings: Any, objects: Any) -> Self:
        """Builds the index of the references and drops any earlier ones.

        Args:
            embeddings: Array `(num_references, dim)`.
            objects: 1D array `(num_references,)` of integers or strings, the
                object or class that each reference shows.

        Returns:
            The index itself.
        """
        rows = as_embeddings(embeddings)
        names = as_labels(objects, len(rows), "objects")
        if self.merge == "mean":
            unit = self.index.metric == "cosine"
            rows, names = merge_views(rows, names, normalize=unit)
        self.index.build(rows)
        self._objects = names
        self._most = int(np.unique(names, return_counts=True)[1].max())
        return self

    def search(self, queries: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Finds the `k` nearest objects of each query.

        Args:
            queries: Array `(num_queries, dim)`.
            k: Integer; if it exceeds the number of objects, all are returned.

        Returns:
            Tuple `(objects, scores)` of arrays `(num_queries, k)`, nearest
            first. A larger score is nearer, as in `Index.search`.
        """
        names = self._built()
        k = min(positive_integer("k", k), len(np.unique(names)))
        if self._most == 1:
            rows, near = self.index.search(queries, k)
            return names[rows], near
        queries = as_embeddings(queries, "queries")
        # So many rows show `k` objects at least.
        width = min((k - 1) * self._most + 1, len(names))
        objects = np.empty((len(queries), k), names.dtype)
        scores = np.empty((len(queries), k), np.float32)
        for block in row_blocks(len(queries), ROWS_PER_BLOCK // width):
            rows, near = self.index.search(queries[block], width)
            found = names[rows]
            first = np.empty((len(found), k), np.int64)
            for query, own in enumerate(found):
                places = np.unique(own, return_index=True)[1]
                first[query] = np.sort(places)[:k]
            objects[block] = np.take_along_axis(found, first, axis=1)
            scores[block] = np.take_along_axis(near, first, axis=1)
        return objects, scores

    def _built(self) -> np.ndarray:
        require(
            self._objects is not None,
            "ViewIndex",
            "built before it is used",
            "an empty index",
            "Call `build(embeddings, objects)` first.",
        )
        return self._objects  # type: ignore[return-value]

    def _brief_title(self) -> str:
        if self._objects is None:
            return f"ViewIndex: empty, by {self.merge}"
        return f"ViewIndex: {len(self.objects):,} objects, by {self.merge}"


def _unit(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)
