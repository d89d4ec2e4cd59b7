"""The two views of each image in a batch."""

from typing import Any, NamedTuple

from keras import ops

from keras_dml import distribute
from keras_dml.ops.pairs import Pairs


class Views(NamedTuple):
    """Two rows for each image of the batch of all replicas.

    Attributes:
        first: Float tensor `(rows, dim)`.
        second: Float tensor `(rows, dim)`, the other view of each first one.
        chosen: Boolean tensor `(rows,)`, which rows hold two views; the others
            do not count.
    """

    first: Any
    second: Any
    chosen: Any


def two_views(pairs: Pairs) -> Views:
    """Returns the first two rows of each class as the views of an image.

    Args:
        pairs: The `Pairs` of a replica, where a class is an image.
    """
    targets, _ = first_pairs(pairs)
    weights = ops.cast(targets, pairs.embeddings.dtype)
    number = ops.sum(weights, axis=1, keepdims=True)
    second = ops.matmul(weights / ops.maximum(number, 1.0), pairs.references)
    return Views(
        distribute.all_gather(pairs.embeddings),
        distribute.all_gather(second),
        # Booleans do not travel between replicas.
        distribute.all_gather(ops.cast(ops.any(targets, axis=1), "int32")) > 0,
    )


def first_pairs(pairs: Pairs):
    """Returns where the first row of each class meets the second.

    With a matrix of pairs in place of labels, a first row is one without an
    earlier positive, and a second row one with exactly one.

    Args:
        pairs: The `Pairs` of a replica.

    Returns:
        Two boolean tensors: `(rows, columns)`, the second rows of each first
        row; and `(columns,)`, which columns are second rows.
    """
    positive = ops.cast(pairs.positive, "int32")
    turn = _turns(distribute.all_gather(positive))
    rows = ops.arange(ops.shape(positive)[0]) + pairs.first_row
    is_first = ops.equal(ops.take(turn, rows), 0)
    is_second = ops.equal(turn, 1)
    meet = ops.logical_and(pairs.positive, is_second[None, :])
    return ops.logical_and(meet, is_first[:, None]), is_second


def _turns(positive):
    """Counts for each row the earlier rows of the batch that belong to it."""
    rows = ops.arange(ops.shape(positive)[0])
    earlier = ops.less(rows[None, :], rows[:, None])
    return ops.sum(ops.where(earlier, positive, 0), axis=1)
