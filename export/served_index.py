"""Searches an index inside a SavedModel, with its table of ids."""

from typing import Any, final

import numpy as np
import tensorflow as tf

from keras_dml.checks import require
from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation.index.scann_searcher import (
    HASHING_FROM,
    scann_distance,
)
from keras_dml.evaluation.index.spaces import Space
from keras_dml.export.search_ops import ExactOps, ScannOps, has_scann_ops

# These values fill places without a neighbor. JSON has no infinity.
NO_ID = {"integer": -1, "string": ""}
NO_SCORE = float(np.finfo(np.float32).min)


@final
class ServedIndex(tf.Module):
    """Finds references with ops of TensorFlow, or of ScaNN.

    Args:
        gallery: `EmbeddingSet`, made by the embedder that is exported. The
            search ignores roles and finds all rows.
        metric: `"cosine"`, or `"euclidean"`, whose scores are negative
            squared distances.
        index: `"exact"`, `"scann"`, or `"auto"`, which is exact below 20,000
            references, as in ScaNN's own rule, and where ScaNN cannot be
            loaded. Defaults to `"auto"`.
        max_k: Integer, the largest number of neighbors that a request may ask
            for. Defaults to `100`.

    Raises:
        UsageError: If the gallery is empty, or ScaNN is requested and cannot
            be loaded.

    Example:

    >>> pets = EmbeddingSet([[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> index = ServedIndex(pets, "cosine")
    >>> index.search(tf.constant([[2.0, 1.0]]), tf.constant(2))["ids"].numpy()
    array([[0, 1]])
    """

    def __init__(
        self,
        gallery: EmbeddingSet,
        metric: str,
        index: str = "auto",
        max_k: int = 100,
    ) -> None:
        super().__init__()
        self._size = len(gallery)
        require(self._size, "gallery", "at least one embedding", gallery)
        self._weights_hash = gallery.weights_hash
        self._max_k = max_k
        # Sorts by id, because for equal scores the smaller id comes first.
        order = np.argsort(gallery.ids, kind="stable")
        ids = gallery.ids[order]
        texts = ids.dtype.kind == "U"
        self.id_type = "string" if texts else "integer"
        ids = ids.astype(object if texts else np.int64)
        labels = gallery.names.astype(object)[order]
        self._ids = tf.Variable(ids, trainable=False, name="ids")
        self._labels = tf.Variable(labels, trainable=False, name="labels")
        self._space = Space.fit(gallery.embeddings, metric)
        rows = self._space.transform(gallery.embeddings[order])
        if index == "auto":
            many = self._size >= HASHING_FROM
            index = "scann" if many and has_scann_ops() else "exact"
        self.kind = index
        self._search: ExactOps | ScannOps
        if index == "exact":
            self._search = ExactOps(rows, self._space.biases(rows))
        else:
            self._search = ScannOps(rows, scann_distance(metric))

    @property
    def dim(self) -> int:
        """The dimension of the embeddings."""
        return len(self._space.offset)

    @property
    def facts(self) -> dict[str, Any]:
        """The facts about the index that the manifest tells a client."""
        shape = {}
        if isinstance(self._search, ScannOps):
            shape = {"shape": self._search.shape.name}
        return {
            "kind": self.kind,
            **shape,
            "references": self._size,
            "weights_hash": self._weights_hash,
            "metric": self._space.metric,
            "max_k": self._max_k,
            "ids": self.id_type,
            "no_id": NO_ID[self.id_type],
            "no_score": NO_SCORE,
        }

    def search(self, queries, k, usable=None) -> dict[str, tf.Tensor]:
        """Finds the nearest references of each query.

        Args:
            queries: Float32 tensor `(batch, dim)`.
            k: int32 tensor, the number of neighbors: one number, or one for
                each query.
            usable: Bool tensor `(batch,)` that marks the queries to answer.
                Defaults to `None`, all queries.

        Returns:
            Dict of "ids", int64 or string `(batch, max(k))`; "labels", string,
            and "scores", float32, of the same shape, nearest first; and "ok",
            bool `(batch,)`, whether the query was usable and finite. Places
            without a neighbor hold `NO_ID`, an empty label and `NO_SCORE`:
            all places of a query that is not ok, places beyond the query's
            `k`, and places beyond the number of references.

        Raises:
            tf.errors.InvalidArgumentError: If `k` is out of range.
        """
        count = tf.shape(queries)[0]
        k = self._checked_counts(k, count)
        width = tf.reduce_max(tf.concat([k, [1]], axis=0))
        found = tf.minimum(width, self._size)
        ok = tf.reduce_all(tf.math.is_finite(queries), axis=1)
        if usable is not None:
            ok &= usable
        queries = self._transform(tf.where(ok[:, None], queries, 0.0))
        rows, scores = self._search(queries, found)
        missing = [[0, 0], [0, width - found]]
        rows = tf.pad(rows, missing)
        scores = self._public_scores(scores)
        scores = tf.pad(scores, missing, constant_values=np.nan)
        rows, scores = _sorted(rows, scores)
        asked = tf.range(width)[None] < k[:, None]
        there = ~tf.math.is_nan(scores) & ok[:, None] & asked
        rows = tf.where(there, rows, 0)
        ids = tf.gather(self._ids, rows)
        no_id = tf.constant(NO_ID[self.id_type], ids.dtype)
        return {
            "ids": tf.where(there, ids, no_id),
            "labels": tf.where(there, tf.gather(self._labels, rows), ""),
            "scores": tf.where(there, scores, NO_SCORE),
            "ok": ok,
        }

    def _checked_counts(self, k, count):
        """Returns `k` as a vector of one number, or one for each query."""
        max_k = self._max_k
        k = tf.reshape(k, [-1])
        checks = [
            tf.debugging.Assert(
                tf.reduce_all((k >= 1) & (k <= max_k)),
                [f"`k` must be in 1..{max_k}. Received:", k],
            ),
            tf.debugging.Assert(
                (tf.size(k) == 1) | (tf.size(k) == count),
                ["`k` must be one number or one for each of", count, "rows"],
            ),
        ]
        with tf.control_dependencies(checks):
            return tf.identity(k)

    def _transform(self, queries):
        """Transforms queries as `Space.transform` does."""
        if self._space.metric == "cosine":
            return unit_rows(queries)
        return queries - self._space.offset

    def _public_scores(self, scores):
        if self._space.metric == "cosine":
            return scores
        if isinstance(self._search, ScannOps):
            scores = -scores
        return tf.minimum(scores, 0.0)


def unit_rows(rows) -> tf.Tensor:
    """Divides rows `(batch, dim)` by their lengths; a zero row stays zero."""
    # Dividing by the largest value first keeps squares from overflowing.
    largest = tf.reduce_max(tf.abs(rows), axis=1, keepdims=True)
    rows = tf.math.divide_no_nan(rows, largest)
    return tf.math.divide_no_nan(rows, tf.norm(rows, axis=1, keepdims=True))


def _sorted(rows, scores):
    """Sorts by descending score, then by row; NaN comes last."""

    def reorder(order):
        return [tf.gather(one, order, batch_dims=1) for one in (rows, scores)]

    rows, scores = reorder(tf.argsort(rows, stable=True))
    key = tf.where(tf.math.is_nan(scores), -np.inf, scores)
    return reorder(tf.argsort(key, direction="DESCENDING", stable=True))
