"""Exact search in plain TensorFlow, for a SavedModel."""

from typing import final

import numpy as np
import tensorflow as tf

# 256 MiB of float32.
SCORES_PER_BLOCK = 2**26


@final
class ExactOps(tf.Module):
    """Compares queries with every row, a block of queries at a time.

    Args:
        rows: Float32 array `(num_references, dim)`.
        biases: Float32 array `(num_references,)`, subtracted from the
            products with each row. Defaults to `None`, no biases.
    """

    def __init__(
        self, rows: np.ndarray, biases: np.ndarray | None = None
    ) -> None:
        super().__init__()
        self._rows = tf.Variable(rows, trainable=False, name="references")
        self._biases = None
        if biases is not None:
            self._biases = tf.Variable(biases, trainable=False, name="biases")
        self._most_queries = max(1, SCORES_PER_BLOCK // len(rows))

    def __call__(self, queries, k) -> tuple[tf.Tensor, tf.Tensor]:
        """Numbers of the nearest rows, and their scores.

        Args:
            queries: Float32 tensor `(batch, dim)`.
            k: int32 scalar, at most the number of rows.

        Returns:
            Tuple of an int32 and a float32 tensor `(batch, k)`, the largest
            score first; of equal scores the first row.
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
        return (
            tf.reshape(rows, flat)[:count],
            tf.reshape(scores, flat)[:count],
        )

    def _search_block(self, queries, k):
        scores = tf.matmul(queries, self._rows, transpose_b=True)
        if self._biases is not None:
            scores -= self._biases
        return tuple(tf.math.top_k(scores, k))
