"""A miner of the triplets that the caller lists."""

import keras
import numpy as np
from keras import ops

from keras_dml.checks import require
from keras_dml.miners.base import TripletMiner
from keras_dml.ops.pairs import Pairs


def pair_matrix(rows, positives=(), negatives=()):
    """Makes the labels of a batch from a list of its pairs.

    Every loss on pairs takes such a matrix in place of labels, another one in
    each batch. Pairs that are in neither list do not count.

    Args:
        rows: Integer, the number of rows of the batch.
        positives: Integers `(pairs, 2)`: a row, and one that belongs to it.
        negatives: Integers `(pairs, 2)`: a row, and one that does not.

    Returns:
        Int32 array `(rows, rows)`: 1 for positives, 0 for negatives, -1 for
        other pairs.

    Raises:
        UsageError: If a list is not one of pairs of rows of the batch.

    Example:

    >>> pair_matrix(3, positives=[(0, 1)], negatives=[(0, 2)])
    array([[-1,  1,  0],
           [-1, -1, -1],
           [-1, -1, -1]], dtype=int32)
    """
    matrix = np.full((rows, rows), -1, "int32")
    for name, value, pairs in (
        ("negatives", 0, negatives),
        ("positives", 1, positives),
    ):
        pairs = _tuples(name, pairs, 2)
        require(
            (pairs < rows).all(), name, f"pairs of rows below {rows}", pairs
        )
        matrix[tuple(pairs.T)] = value
    return matrix


@keras.saving.register_keras_serializable(package="keras_dml.miners")
class Given(TripletMiner):
    """Chooses the triplets of a list, whatever the labels are.

    For batches that are made of triplets, one like the other. Where each batch
    has other pairs, give the loss a matrix in place of labels, see
    `pair_matrix`.

    Args:
        triplets: Integers `(triplets, 3)`: the rows of anchor, positive and
            negative in the batch of all replicas. Defaults to `None`, each
            three rows in turn.

    Raises:
        UsageError: If `triplets` is not a list of rows, or a batch has fewer.

    Example:

    >>> miner = Given([(0, 1, 2), (3, 4, 5)])  # of six rows, as `Given()`
    >>> loss = keras_dml.losses.Triplet(mining="all", miner=miner)
    """

    # Of the rows of a memory the list says nothing.
    within_batch = True

    def __init__(self, triplets=None):
        self.triplets = triplets
        if triplets is not None:
            self.triplets = _tuples("triplets", triplets, 3).tolist()
            require(self.triplets, "triplets", "at least one triplet", triplets)

    def chooser(self, pairs: Pairs):
        anchor, positive, negative = self._places(pairs)

        def chooses(is_positive):
            there = ops.matmul(anchor, ops.cast(is_positive, anchor.dtype))
            listed = ops.sum(there * positive, axis=1, keepdims=True)
            return _any_of(anchor, listed * negative)

        return chooses

    def mine(self, pairs: Pairs):
        anchor, positive, negative = self._places(pairs)
        return _any_of(anchor, positive), _any_of(anchor, negative)

    def with_triplets(self, pairs: Pairs) -> Pairs:
        return super().with_triplets(self(pairs))

    def _places(self, pairs):
        """Returns where each triplet has its rows: floats, 0 and 1."""
        dtype = pairs.embeddings.dtype
        own = ops.arange(ops.shape(pairs.positive)[0]) + pairs.first_row
        every = ops.arange(ops.shape(pairs.positive)[1])
        triplets = self._triplets(pairs.positive.shape[1], every)
        return tuple(
            ops.cast(
                ops.equal(triplets[:, i : i + 1], ops.cast(rows, "int32")),
                dtype,
            )
            for i, rows in enumerate((own, every, every))
        )

    def _triplets(self, columns, every):
        """Returns the triplets of a batch: int32 `(triplets, 3)`."""
        if self.triplets is None:
            require(
                columns is None or columns % 3 == 0,
                "triplets",
                "given for a batch whose rows are not triplets in turn",
                f"None and {columns} rows",
            )
            return ops.cast(ops.reshape(every, (-1, 3)), "int32")
        largest = max(map(max, self.triplets))
        require(
            columns is None or largest < columns,
            "triplets",
            f"rows of a batch of {columns}",
            largest,
        )
        return ops.convert_to_tensor(self.triplets, "int32")


def _any_of(anchor, places):
    """Returns the places of all triplets of each row."""
    return ops.matmul(ops.transpose(anchor), places) > 0


def _tuples(name, tuples, length):
    try:
        array = np.asarray(tuples)
    except ValueError:  # Of unlike lengths.
        array = np.empty(1, object)
    if array.size == 0:
        return np.zeros((0, length), "int32")
    require(
        array.dtype.kind in "iu"
        and array.ndim == 2
        and array.shape[1] == length
        and (array >= 0).all(),
        name,
        f"a list of {length} rows each, counted from 0",
        tuples,
    )
    return array.astype("int32")
