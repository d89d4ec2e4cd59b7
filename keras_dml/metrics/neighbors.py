"""Keeps the nearest neighbors of every row while rows arrive in batches."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_dml.ops.reductions import masked_sum


class Neighbors(NamedTuple):
    """The nearest neighbors of stored rows, the nearest first.

    Attributes:
        similarity: Float tensor `(rows, depth)`, minus infinity where a row
            has fewer neighbors.
        match: Boolean tensor `(rows, depth)`, whether a neighbor is of the
            class of the row.
        positives: Int32 tensor `(rows,)`, the number of other rows of the
            class, beyond the depth as well.
    """

    similarity: Any
    match: Any
    positives: Any


def merge_neighbors(neighbors, similarity, match, valid) -> Neighbors:
    """Adds further rows to the neighbors of stored rows.

    Of equal similarities the row that came first is the nearer one.

    Args:
        neighbors: `Neighbors` of the stored rows.
        similarity: Float tensor `(rows, columns)`, of each stored row and each
            further row. NaN is the farthest.
        match: Boolean tensor `(rows, columns)`, the pairs of one class.
        valid: Boolean tensor `(rows, columns)`, the pairs that count.

    Returns:
        `Neighbors` of the same shapes.

    Example:

    >>> few = Neighbors(np.array([[0.5]]), np.array([[False]]), np.array([0]))
    >>> both = np.array([[True, True]])
    >>> found = merge_neighbors(few, np.array([[0.2, 0.9]]), both, both)
    >>> float(found.similarity[0, 0]), int(found.positives[0])
    (0.9, 2)
    """
    known = ops.logical_and(valid, ops.logical_not(ops.isnan(similarity)))
    similarity = ops.where(known, similarity, -float("inf"))
    all_similarities = ops.concatenate(
        [neighbors.similarity, similarity], axis=1
    )
    match = ops.logical_and(match, valid)
    all_matches = ops.concatenate([neighbors.match, match], axis=1)
    depth = neighbors.similarity.shape[1]
    nearest, places = _largest(all_similarities, depth)
    return Neighbors(
        nearest,
        ops.logical_and(
            ops.take_along_axis(all_matches, places, axis=1),
            nearest > -float("inf"),
        ),
        neighbors.positives + ops.sum(ops.cast(match, "int32"), axis=1),
    )


def _largest(values, number):
    """Returns the largest of each row and their places, the first of equals."""
    if keras.backend.backend() != "torch":
        return ops.top_k(values, number)
    # PyTorch's `topk` returns equal values in any order; its sort is stable.
    places = ops.argsort(-values, axis=1)[:, :number]
    return ops.take_along_axis(values, places, axis=1), places


def recall_at_k(neighbors: Neighbors, k: int):
    """Returns 1 for rows with a match among the `k` nearest, otherwise 0."""
    return ops.cast(ops.any(neighbors.match[:, :k], axis=1), "float32")


def r_precision(neighbors: Neighbors):
    """Returns the share of matches among the `R` nearest of each row.

    `R` is the number of other rows of its class, at most the depth.
    """
    within, number = _within_r(neighbors)
    return masked_sum(ops.ones_like(neighbors.similarity), within) / number


def map_at_r(neighbors: Neighbors):
    """Returns the average precision of each row at `R` neighbors.

    `1/R sum_{i <= R} precision(i) match(i)`, with `R` the number of other rows
    of the class, at most the depth.
    """
    within, number = _within_r(neighbors)
    matches = ops.cast(neighbors.match, "float32")
    rank = ops.arange(1, matches.shape[1] + 1, dtype="float32")
    precision = ops.cumsum(matches, axis=1) / rank
    return masked_sum(precision, within) / number


def _within_r(neighbors):
    """Returns the matches among the R nearest, and R, at least 1."""
    depth = neighbors.match.shape[1]
    number = ops.clip(neighbors.positives, 1, depth)
    within = ops.arange(depth, dtype="int32")[None, :] < number[:, None]
    return ops.logical_and(neighbors.match, within), ops.cast(number, "float32")
