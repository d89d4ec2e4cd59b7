"""Reads and writes rows of large weights; finds the distinct values."""

from keras import ops

from keras_dml import distribute

NO_VALUE = 2**31 - 1


def read_rows(variable, positions):
    """Returns the rows of a weight at `positions`; reads no other rows."""
    value = distribute.local_variable(variable)
    if value is None:
        return ops.take(variable, positions, axis=0)
    return value.sparse_read(positions)


def write_rows(variable, positions, rows) -> None:
    """Sets rows of a weight; rows for one position must be equal."""
    value = distribute.local_variable(variable)
    indices = positions[:, None]
    if value is None:
        variable.assign(ops.scatter_update(variable, indices, rows))
    else:
        value.scatter_nd_update(indices, rows)


def add_rows(variable, positions, rows) -> None:
    """Adds to rows of a weight; positions may repeat."""
    value = distribute.local_variable(variable)
    indices = positions[:, None]
    if value is None:
        added = ops.segment_sum(rows, positions, variable.shape[0])
        variable.assign_add(added)
    else:
        value.scatter_nd_add(indices, rows)


def entries(matrix, columns):
    """Returns one entry of each row, from the column given for the row.

    Args:
        matrix: Tensor `(rows, columns)`.
        columns: Int32 tensor `(rows,)`.

    Returns:
        Tensor `(rows,)`.

    Example:

    >>> matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> ops.convert_to_numpy(entries(matrix, np.array([1, 0])))
    array([2., 3.])
    """
    # `ops.take_along_axis` would copy the matrix.
    rows = ops.arange(ops.shape(columns)[0], dtype=columns.dtype)
    return ops.take(
        ops.reshape(matrix, (-1,)), rows * matrix.shape[1] + columns
    )


def places(columns):
    """Returns the row and the column of one entry of each row.

    Args:
        columns: Integer tensor `(rows,)`, the column given for each row.

    Returns:
        Int32 tensor `(rows, 2)`, as `ops.scatter_update` takes it.
    """
    rows = ops.arange(ops.shape(columns)[0], dtype="int32")
    return ops.stack([rows, ops.cast(columns, "int32")], axis=1)


def distinct(x):
    """Returns the distinct values of `x` in ascending order, and their number.

    Args:
        x: Integer tensor `(n,)` of values below `NO_VALUE`.

    Returns:
        Tensor of the shape and dtype of `x`: the distinct values, then
        `NO_VALUE` up to the end; and their number, an int32 scalar tensor.

    Example:

    >>> values, count = distinct(np.array([7, 2, 7], "int32"))
    >>> ops.convert_to_numpy(values)
    array([         2,          7, 2147483647], dtype=int32)
    >>> int(count)
    2
    """
    ordered = ops.sort(x)
    before = ops.concatenate([ordered[:1] - 1, ordered[:-1]])
    new = ops.cast(ops.not_equal(ordered, before), "int32")
    places = ops.cumsum(new) - 1
    empty = ops.full_like(ordered, NO_VALUE)
    return ops.scatter_update(empty, places[:, None], ordered), ops.sum(new)
