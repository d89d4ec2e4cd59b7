"""Rows of large weights, read and changed in place.

An assignment of the whole weight would copy it at every step. Where TensorFlow
is not the backend, it is what happens.
"""

from keras import ops

from keras_dml import distribute


def read_rows(variable, positions):
    """The rows of a weight at `positions`, without reading the others."""
    value = distribute.local_variable(variable)
    if value is None:
        return ops.take(variable, positions, axis=0)
    return value.sparse_read(positions)


def write_rows(variable, positions, rows) -> None:
    """Sets rows of a weight; rows for the same position must be equal."""
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
