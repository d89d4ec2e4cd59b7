"""Sums of a matrix that do not make it.

XLA on a processor makes the whole operand of `ops.sum` first. It fuses that
of a product with a column of ones, and both take fewer passes over memory.
"""

from keras import ops


def row_sums(x):
    """`ops.sum(x, axis=1)` of a float matrix, as a product."""
    ones = ops.ones((ops.shape(x)[1], 1), dtype=x.dtype)
    return ops.matmul(x, ones)[:, 0]


def column_sums(x):
    """`ops.sum(x, axis=0)` of a float matrix, as a product."""
    ones = ops.ones((1, ops.shape(x)[0]), dtype=x.dtype)
    return ops.matmul(ones, x)[0]
