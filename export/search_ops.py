"""Searches with TensorFlow ops that a SavedModel can hold: exact or ScaNN."""

import types
from typing import final

import numpy as np
import tensorflow as tf

from keras_dml.errors import UsageError
from keras_dml.evaluation.index.scann import MIN_REORDERED
from keras_dml.evaluation.index.scann_searcher import (
    NEIGHBORS,
    ScannShape,
    configure,
    import_scann,
)
from keras_dml.evaluation.index.spaces import NEAR

# 256 MiB of float32.
SCORES_PER_BLOCK = 2**26
# ScaNN's ops are not part of TensorFlow, so saving must allow this namespace.
SCANN_NAMESPACE = "Scann"


@final
class ExactOps(tf.Module):
    """Compares queries with every row, a block of queries at a time.

    The scores are products with the rows or, with `squares`, negative squared
    distances. As in `sharpen`, those that rounding blurs are taken of the
    difference, but only of the `k` that are found.

    Args:
        rows: Float32 array `(num_references, dim)`.
        squares: Float32 array `(num_references,)`, the squared length of each
            row. Defaults to `None`, for products.
    """

    def __init__(
        self, rows: np.ndarray, squares: np.ndarray | None = None
    ) -> None:
        super().__init__()
        self._rows = tf.Variable(rows, trainable=False, name="references")
        self._squares = None
        if squares is not None:
            self._squares = tf.Variable(
                squares, trainable=False, name="squares"
            )
        self._most_queries = max(1, SCORES_PER_BLOCK // len(rows))

    def __call__(self, queries, k) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the indices of the nearest rows, and their scores.

        Args:
            queries: Float32 tensor `(batch, dim)`.
            k: int32 scalar, at most the number of rows.

        Returns:
            Tuple of an int32 and a float32 tensor `(batch, k)`, with the
            largest score first, before rounding is mended. For equal scores,
            the smaller index comes first.
        """
        count = tf.shape(queries)[0]
        size = tf.clip_by_value(count, 1, self._most_queries)
        num_blocks = tf.maximum(1, -(-count // size))
        padding = [[0, num_blocks * size - count], [0, 0]]
        blocks = tf.reshape(
            tf.pad(queries, padding), [num_blocks, size, queries.shape[1]]
        )
        scores, rows = tf.map_fn(
            lambda block: self._search_block(block, k),
            blocks,
            parallel_iterations=1,
            fn_output_signature=(
                tf.TensorSpec((None, None), tf.float32),
                tf.TensorSpec((None, None), tf.int32),
            ),
        )
        flat = [num_blocks * size, k]
        rows, scores = (tf.reshape(one, flat)[:count] for one in (rows, scores))
        return rows, scores

    def _search_block(self, queries, k):
        scores = tf.matmul(queries, self._rows, transpose_b=True)
        if self._squares is None:
            return tuple(tf.math.top_k(scores, k))
        # The query's own length orders nothing, but would round.
        scores, rows = tf.math.top_k(2 * scores - self._squares, k)
        lengths = tf.reduce_sum(tf.square(queries), axis=1, keepdims=True)
        scores -= lengths
        blurred = tf.where(scores > -NEAR * lengths)
        apart = tf.gather(queries, blurred[:, 0])
        apart -= tf.gather(self._rows, tf.gather_nd(rows, blurred))
        sharp = -tf.reduce_sum(tf.square(apart), axis=1)
        return tf.tensor_scatter_nd_update(scores, blurred, sharp), rows


def import_scann_ops() -> types.ModuleType:
    """Imports ScaNN's TensorFlow interface, which registers its ops.

    Raises:
        UsageError: If ScaNN cannot be loaded.
    """
    import_scann()
    try:
        from scann.scann_ops.py import scann_ops
    except Exception as error:
        raise UsageError(
            "An index of ScaNN in a SavedModel needs the ops of ScaNN 1.4.2, "
            f"which cannot be loaded here ({type(error).__name__}). Install "
            "them by `pip install 'keras-dml[scann]'`, or choose "
            "`index=exact`."
        ) from error
    return scann_ops


def has_scann_ops() -> bool:
    """Returns whether ScaNN's TensorFlow interface can be loaded here."""
    try:
        import_scann_ops()
    except UsageError:
        return False
    return True


@final
class ScannOps(tf.Module):
    """Searches rows with ScaNN, and keeps ScaNN's trained state in variables.

    The first search after loading makes a searcher from these variables and
    keeps it.

    Args:
        rows: Float32 array `(num_references, dim)`.
        distance: `"dot_product"` or `"squared_l2"`.
        shape: `ScannShape`. Defaults to `None`, chosen by the number of rows.

    Raises:
        UsageError: If ScaNN cannot be loaded, or cannot be trained on the
            rows.
    """

    def __init__(
        self, rows: np.ndarray, distance: str, shape: ScannShape | None = None
    ) -> None:
        super().__init__()
        self._ops = import_scann_ops()
        self.shape = shape or ScannShape.choose(len(rows))
        self._size = len(rows)
        builder = self._ops.builder(rows, NEIGHBORS, distance)
        try:
            searcher = configure(builder, self.shape, rows.shape[1]).build()
        except tf.errors.OpError as error:
            raise UsageError(
                f"ScaNN must be able to train {self.shape} on {len(rows)} "
                f"rows. Received: {error.message}. Choose `index=exact`."
            ) from error
        self._state = searcher.serialize_to_module()

    def __call__(self, queries, k) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the indices of the nearest rows, and ScaNN's distances.

        Args:
            queries: Float32 tensor `(batch, dim)`, finite.
            k: int32 scalar, at most the number of rows.

        Returns:
            Tuple of an int32 and a float32 tensor `(batch, k)`.
        """
        leaves = self.shape.default_leaves_to_search
        rows, distances = self._search(queries, k, leaves)
        if self.shape.name != "tree":
            return rows, distances
        short = tf.reduce_any(tf.math.is_nan(distances), axis=1, keepdims=True)

        def everywhere():
            found = self._search(queries, k, self.shape.num_leaves)
            pairs = zip(found, (rows, distances), strict=True)
            return tuple(tf.where(short, *pair) for pair in pairs)

        return tf.cond(
            tf.reduce_any(short), everywhere, lambda: (rows, distances)
        )

    def _search(self, queries, k, leaves):
        reorder = tf.maximum(tf.maximum(MIN_REORDERED, 4 * k), k)
        searcher = self._ops.searcher_from_module(self._state)
        rows, distances = searcher.search_batched_parallel(
            queries, k, tf.minimum(reorder, self._size), leaves
        )
        # If all lists of a batch are short, ScaNN returns fewer columns.
        missing = [[0, 0], [0, k - tf.shape(rows)[1]]]
        distances = tf.pad(distances, missing, constant_values=np.nan)
        return tf.pad(rows, missing), distances
