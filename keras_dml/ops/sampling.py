"""Draws the classes of a training that computes with some of them."""

from keras import ops

from keras_dml.ops.rows import distinct


def positions_in_sample(labels, batch_labels):
    """Returns the column of `sample_classes` that holds each row's class.

    The labels of the batch determine it: their classes come first, in
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
    """Returns the classes of the batch in ascending order, then drawn ones.

    The function divides the other classes, from a random start on, into one
    neighborhood of about equal length for each remaining column, and draws
    one class from each. So it draws every other class with the same
    probability and none twice, in a time that grows with `size` alone. If
    `size` equals `num_classes`, it returns all classes.

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
    # The first neighborhoods share the remainder of the division. Products of
    # two large numbers would not fit into 32 bits.
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
    """Returns the class at a place among those that are not in `classes`."""
    order = ops.arange(ops.shape(classes)[0], dtype="int32")
    before = ops.searchsorted(classes - order, place, side="right")
    return place + ops.cast(before, "int32")


def _below(limit, uniform):
    """Maps numbers in [0, 1) to integers from 0 to `limit - 1`."""
    scaled = uniform * ops.cast(limit, uniform.dtype)
    return ops.minimum(ops.cast(ops.floor(scaled), "int32"), limit - 1)
