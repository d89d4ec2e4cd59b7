"""The pairs of a batch: which are positive, and how similar they are."""

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from keras_dml.ops.distances import (
    is_distance,
    lp_distances,
    noise_ratios,
    order_of,
    without_rounding,
)
from keras_dml.ops.gradients import custom_gradient, with_slopes


class Pairs(NamedTuple):
    """The pairs of the rows of one replica and the rows of all replicas.

    Attributes:
        embeddings: Float tensor `(rows, dim)`, the rows of this replica.
        references: Float tensor `(columns, dim)`, to compare the rows with.
        positive: Boolean tensor `(rows, columns)`, the pairs of one class. A
            row never pairs with itself.
        negative: Boolean tensor `(rows, columns)`, the pairs of two classes.
        first_row: Integer, the position of the first row in the global batch.
        triplets: Function that chooses the negatives of a positive, see
            `keras_dml.miners.TripletMiner`; `None` for all of them.
        similarity: Float tensor `(rows, columns)`, the inner products where
            they are known; `None` to compute them.
        step: Integer scalar, the training step, which seeds draws; 0 where
            nothing counts it, see `keras_dml.losses.AtStep`.
        labels: Int32 tensor `(rows,)`, the classes of the rows; `None` where a
            matrix of pairs stands for them.
    """

    embeddings: Any
    references: Any
    positive: Any
    negative: Any
    first_row: Any = 0
    triplets: Callable[[Any], Any] | None = None
    similarity: Any = None
    step: Any = 0
    labels: Any = None

    @property
    def masks(self) -> tuple[Any, Any]:
        """The two masks: positive, negative."""
        return self.positive, self.negative

    def with_rows(self, embeddings) -> "Pairs":
        """Returns the pairs of other rows with the same columns."""
        return self._replace(embeddings=embeddings, similarity=None)


def pair_similarities(pairs: Pairs, metric: str = "cosine"):
    """Computes the similarity of every pair.

    Args:
        pairs: The `Pairs`.
        metric: Any that `metric_name` takes; for a distance the similarity is
            minus the distance. Defaults to `"cosine"`, inner products, which
            are cosines for unit rows.

    Returns:
        Tensor `(rows, columns)`; larger is closer.
    """
    if is_distance(metric):
        return -pair_distances(pairs, metric)
    return _products(pairs)


def _products(pairs: Pairs):
    if pairs.similarity is not None:
        return pairs.similarity
    if pairs.references is pairs.embeddings:
        return gram_matrix(pairs.embeddings)
    return ops.matmul(pairs.embeddings, ops.transpose(pairs.references))


@custom_gradient
def gram_matrix(x):
    """Returns `x x^T`; its gradient takes one matrix product instead of two.

    Args:
        x: Float tensor `(rows, dim)`.
    """

    def gradient(upstream):
        return ops.matmul(upstream + ops.transpose(upstream), x)

    return ops.matmul(x, ops.transpose(x)), gradient


def pair_distances(pairs: Pairs, metric: str = "euclidean"):
    """Computes the distance of every pair.

    Args:
        pairs: The `Pairs`.
        metric: Any that `metric_name` takes; for `"cosine"` the distance is
            one minus the inner product, for `"dot"` minus the inner product.
            Defaults to `"euclidean"`.

    Returns:
        Tensor `(rows, columns)`; smaller is closer. For vectors that differ by
        rounding only, the Euclidean distance and its gradient are zero.
    """
    if metric == "cosine":
        return 1.0 - _products(pairs)
    if metric == "dot":
        return -_products(pairs)
    if metric == "signal_to_noise":
        return noise_ratios(pairs.embeddings, pairs.references)
    order = order_of(metric)
    if order not in (None, 2.0):
        return lp_distances(pairs.embeddings, pairs.references, order)
    lengths = (
        ops.sum(ops.square(pairs.embeddings), axis=1)[:, None]
        + ops.sum(ops.square(pairs.references), axis=1)[None, :]
    )
    squared = without_rounding(lengths - 2.0 * _products(pairs), lengths)
    return squared if order is None else _root(squared)


def pair_masks(labels, reference_labels, first_row=0):
    """Returns which pairs are of one class and which are of two.

    Args:
        labels: Integer tensor `(rows,)`, or a matrix `(rows, columns)`:
            positive where two rows belong together, 0 where they do not,
            negative where nobody knows.
        reference_labels: Integer tensor `(columns,)`; not used with a matrix.
        first_row: Integer, the column of the first row. Defaults to `0`.

    Returns:
        Two boolean tensors `(rows, columns)`: positive, negative. Both are
        `False` for the pair of a row with itself.
    """
    if len(labels.shape) == 2:
        labels = ops.cast(labels, "int32")
        same, differs = ops.greater(labels, 0), ops.equal(labels, 0)
    else:
        same = ops.equal(labels[:, None], reference_labels[None, :])
        differs = ops.logical_not(same)
    rows = ops.arange(ops.shape(same)[0]) + first_row
    columns = ops.arange(ops.shape(same)[1])
    other = ops.not_equal(rows[:, None], columns[None, :])
    return ops.logical_and(same, other), ops.logical_and(differs, other)


def over_positives(matrix, positive, step, state):
    """Updates a state for the first positive of all rows, then the second.

    The time grows with the largest number of positives of a row.

    Args:
        matrix: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`.
        step: Function of the state and of three tensors: the entry of
            `matrix` for the positive of each row, `(rows, 1)`; whether the
            row has so many, boolean `(rows, 1)`; and where that positive is,
            boolean `(rows, columns)`. It returns the new state.
        state: Tuple of tensors.

    Returns:
        The last state.
    """
    positions = ops.arange(ops.shape(matrix)[1])
    order = ops.argsort(ops.cast(ops.logical_not(positive), "int32"), axis=1)
    number = ops.sum(ops.cast(positive, "int32"), axis=1)

    def turn(index, state):
        column = ops.take(order, index, axis=1)[:, None]
        entry = ops.take_along_axis(matrix, column, axis=1)
        there = (index < number)[:, None]
        return step(state, entry, there, ops.equal(positions[None], column))

    return ops.fori_loop(0, ops.max(number, initial=0), turn, state)


def sum_over_positives(matrix, positive, term):
    """Adds up what each positive costs next to the other entries of its row.

    Memory is a few matrices `(rows, columns)`; the time grows with the
    largest number of positives of a row. Only first derivatives are correct.

    Args:
        matrix: Float tensor `(rows, columns)`.
        positive: Boolean tensor `(rows, columns)`.
        term: Function of the last three arguments of the `step` of
            `over_positives`; entries have no gradient there. It returns the
            cost of the positive of each row, `(rows,)`, and its derivatives
            by the differences of the entries and that of the positive,
            `(rows, columns)`.

    Returns:
        Tensor `(rows,)`.
    """
    fixed = ops.stop_gradient(matrix)

    def step(state, own, there, itself):
        values, slopes = state
        value, slope = term(own, there, itself)
        total = ops.sum(slope, axis=1, keepdims=True)
        slopes = slopes + slope - ops.where(itself, total, 0.0)
        return values + value, slopes

    zeros = ops.zeros_like(fixed)
    values, slopes = over_positives(fixed, positive, step, (zeros[:, 0], zeros))
    return with_slopes(values, slopes, matrix)


def rows_with_both(positive, negative):
    """Returns which rows have a positive and a negative: boolean `(rows,)`."""
    return ops.logical_and(ops.any(positive, axis=1), ops.any(negative, axis=1))


@custom_gradient
def _root(x):
    """Returns the square root, with gradient zero at zero."""
    root = ops.sqrt(x)
    return root, lambda upstream: ops.divide_no_nan(0.5 * upstream, root)
