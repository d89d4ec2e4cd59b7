"""ScaNN as TensorFlow ops, which a SavedModel can hold."""

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

# ScaNN's ops are no ops of TensorFlow's, and saving must be told so.
NAMESPACE = "Scann"


def import_scann_ops() -> types.ModuleType:
    """ScaNN's TensorFlow interface; importing it registers its ops.

    Raises:
        UsageError: ScaNN cannot be loaded.
    """
    import_scann()
    try:
        from scann.scann_ops.py import scann_ops
    except Exception as error:
        raise UsageError(
            "An index of ScaNN in a SavedModel needs the ops of ScaNN 1.4.2, "
            f"which cannot be loaded here ({type(error).__name__}). Install "
            "them by `pip install 'keras-dml[scann]'`, or choose `--index "
            "exact`."
        ) from error
    return scann_ops


@final
class ScannOps(tf.Module):
    """Searches rows; what ScaNN trained is kept in variables.

    The searcher is made of them by the first search after loading, and kept.

    Args:
        rows: Float32 array `(num_references, dim)`.
        distance: `"dot_product"` or `"squared_l2"`.
        shape: `ScannShape`. Defaults to `None`, by the number of rows.

    Raises:
        UsageError: ScaNN cannot be loaded, or cannot be trained on the rows.
    """

    def __init__(
        self, rows: np.ndarray, distance: str, shape: ScannShape | None = None
    ) -> None:
        super().__init__()
        self._ops = import_scann_ops()
        self.shape = shape or ScannShape.choose(len(rows))
        self._size = len(rows)
        builder = configure(
            self._ops.builder(rows, NEIGHBORS, distance),
            self.shape,
            rows.shape[1],
        )
        try:
            searcher = builder.build()
        except tf.errors.OpError as error:
            raise UsageError(
                f"ScaNN must be able to train {self.shape} on {len(rows)} "
                f"rows. Received: {error.message}. Choose `--index exact`."
            ) from error
        self._state = searcher.serialize_to_module()

    def __call__(self, queries, k) -> tuple[tf.Tensor, tf.Tensor]:
        """Numbers of rows and ScaNN's distances.

        Args:
            queries: Float32 tensor `(batch, dim)`, finite.
            k: int32 scalar, at most the number of rows.

        Returns:
            Tuple of an int32 and a float32 tensor `(batch, k)`.
        """
        rows, distances = self._search(
            queries, k, self.shape.default_leaves_to_search
        )
        if self.shape.name != "tree":
            return rows, distances
        short = tf.reduce_any(tf.math.is_nan(distances), axis=1, keepdims=True)

        def everywhere():
            all_rows, all_distances = self._search(
                queries, k, self.shape.num_leaves
            )
            return (
                tf.where(short, all_rows, rows),
                tf.where(short, all_distances, distances),
            )

        return tf.cond(
            tf.reduce_any(short), everywhere, lambda: (rows, distances)
        )

    def _search(self, queries, k, leaves):
        reorder = tf.maximum(tf.maximum(MIN_REORDERED, 4 * k), k)
        searcher = self._ops.searcher_from_module(self._state)
        rows, distances = searcher.search_batched_parallel(
            queries, k, tf.minimum(reorder, self._size), leaves
        )
        # Lists of a batch that are all short come without the missing places.
        missing = [[0, 0], [0, k - tf.shape(rows)[1]]]
        return (
            tf.pad(rows, missing),
            tf.pad(distances, missing, constant_values=np.nan),
        )
