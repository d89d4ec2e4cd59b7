"""The pairs of a batch: which belong together, how far apart they are."""

from typing import Any, NamedTuple

from keras import ops

from keras_dml.ops.gradients import custom_gradient
from keras_dml.ops.reductions import rounding

DISTANCES = ("cosine", "euclidean", "squared_euclidean")


class Pairs(NamedTuple):
    """The rows of one replica against the rows of all replicas.

    Attributes:
        embeddings: Float tensor `(rows, dim)`, the rows of this replica.
        references: Float tensor `(columns, dim)`, what they are compared with.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class. A
            row never pairs with itself.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        first_row: Integer, the position of the first row in the global batch.
    """

    embeddings: Any
    references: Any
    positive: Any
    negative: Any
    first_row: Any = 0


def pair_similarities(pairs: Pairs):
    """Inner products `(rows, columns)`; cosines if the rows have length 1."""
    if pairs.references is pairs.embeddings:
        return _gram_matrix(pairs.embeddings)
    return ops.matmul(pairs.embeddings, ops.transpose(pairs.references))


@custom_gradient
def _gram_matrix(x):
    """`x x^T`; one product makes the gradient, where two factors make two."""

    def gradient(upstream):
        return ops.matmul(upstream + ops.transpose(upstream), x)

    return ops.matmul(x, ops.transpose(x)), gradient


def pair_distances(pairs: Pairs, metric: str = "euclidean"):
    """Distance of every pair.

    Args:
        pairs: The `Pairs`.
        metric: `"euclidean"`, `"squared_euclidean"`, or `"cosine"` for one
            minus the inner product. Defaults to `"euclidean"`.

    Returns:
        Tensor `(rows, columns)`. The Euclidean distance of vectors that are
        equal but for rounding is zero with the gradient zero.
    """
    similarity = pair_similarities(pairs)
    if metric == "cosine":
        return 1.0 - similarity
    lengths = (
        ops.sum(ops.square(pairs.embeddings), axis=1)[:, None]
        + ops.sum(ops.square(pairs.references), axis=1)[None, :]
    )
    squared = lengths - 2.0 * similarity
    # The difference of large numbers leaves noise, whose root is not small.
    squared = ops.where(
        squared > rounding(squared) * lengths, squared, ops.zeros_like(squared)
    )
    return squared if metric == "squared_euclidean" else _root(squared)


def pair_masks(labels, reference_labels, first_row=0):
    """Which pairs are of one class and which of two.

    Args:
        labels: Integer tensor `(rows,)`, or a matrix `(rows, columns)` that is
            nonzero where two rows belong together.
        reference_labels: Integer tensor `(columns,)`; not used with a matrix.
        first_row: Integer, the column that is the first row itself. Defaults
            to `0`.

    Returns:
        Two boolean tensors `(rows, columns)`: positive, negative. Both are
        `False` for a row with itself.
    """
    if len(labels.shape) == 2:
        same = ops.not_equal(labels, 0)
    else:
        same = ops.equal(labels[:, None], reference_labels[None, :])
    rows = ops.arange(ops.shape(same)[0]) + first_row
    columns = ops.arange(ops.shape(same)[1])
    other = ops.not_equal(rows[:, None], columns[None, :])
    positive = ops.logical_and(same, other)
    negative = ops.logical_and(ops.logical_not(same), other)
    return positive, negative


@custom_gradient
def _root(x):
    """Square root with the gradient zero at zero."""
    root = ops.sqrt(x)
    return root, lambda upstream: ops.divide_no_nan(0.5 * upstream, root)
