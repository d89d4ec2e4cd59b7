"""Some of the classes: those of the batch and others drawn at random."""

from keras import ops

from keras_dml.ops.distinct import distinct


def positions_in_sample(labels, batch_labels):
    """The column of `sample_classes` that holds the class of each row.

    It follows from the labels of the batch alone: its classes come first, in
    ascending order.

    Args:
        labels: Int32 tensor `(rows,)`, all of them in `batch_labels`.
        batch_labels: Int32 tensor `(batch,)`, the labels of all replicas.

    Returns:
        Int32 tensor `(rows,)`.

    Example:

    >>> labels = np.array([7, 2, 7], "int32")
    >>> ops.convert_to_numpy(positions_in_sample(labels, labels))
    array([1, 0, 1], dtype=int32)
    """
    classes, _ = distinct(batch_labels)
    return ops.cast(ops.searchsorted(classes, labels), "int32")


def sample_classes(batch_labels, num_classes, size, uniform):
    """Classes of the batch in ascending order, then drawn ones.

    The other classes are divided into as many neighbourhoods of equal length
    as there are columns left, from a random start on, and one class is drawn
    from each. So every other class is drawn with the same probability, none
    twice, in a time that grows with `size` alone; with `size` equal to
    `num_classes` all are.

    Args:
        batch_labels: Int32 tensor `(batch,)`, the labels of all replicas.
        num_classes: Integer.
        size: Integer, at least the number of classes of the batch, at most
            `num_classes`.
        uniform: Float tensor `(size + 1,)` of numbers in `[0, 1)`.

    Returns:
        Int32 tensor `(size,)` of distinct classes.

    Example:

    >>> labels, uniform = np.array([3, 1], "int32"), np.zeros(5, "float32")
    >>> ops.convert_to_numpy(sample_classes(labels, 8, 4, uniform))
    array([1, 3, 0, 5], dtype=int32)
    """
    classes, count = distinct(batch_labels)
    others, columns = num_classes - count, size - count
    column = ops.arange(size, dtype="int32")
    # The first neighbourhoods are longer by the remainder of the division;
    # products of two large numbers would not fit into 32 bits.
    number = column - count
    length = others // ops.maximum(columns, 1)
    longer = others - length * columns
    first = number * length + ops.minimum(number, longer)
    length = length + ops.cast(number < longer, "int32")
    place = first + _below(length, uniform[:size])
    place = place + _below(others, uniform[size])
    place = ops.mod(place, ops.maximum(others, 1))
    own = ops.take(
        classes, ops.minimum(column, ops.shape(classes)[0] - 1), axis=0
    )
    return ops.where(number < 0, own, _other_class(place, classes))


def _other_class(place, classes):
    """The class at a place among those that are not in `classes`."""
    order = ops.arange(ops.shape(classes)[0], dtype="int32")
    before = ops.searchsorted(classes - order, place, side="right")
    return place + ops.cast(before, "int32")


def _below(limit, uniform):
    """Integers from 0 to `limit - 1`."""
    scaled = uniform * ops.cast(limit, uniform.dtype)
    return ops.minimum(ops.cast(ops.floor(scaled), "int32"), limit - 1)
