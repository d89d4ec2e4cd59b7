"""Tells embeddings of length 1, also inside a compiled step."""

import itertools

import numpy as np

from keras_dml.ops.labels import known_values

# Operations of TensorFlow: those that change no value but its type, and those
# that make a length, or one over it, of the sum of squares.
_SAME = ("Identity", "Cast")
_OF_SUM = (*_SAME, "Sqrt", "Rsqrt", "Maximum", "Minimum")
_DIVISIONS = ("Mul", "RealDiv", "DivNoNan")


def look_like_embeddings(rows) -> bool:
    """Returns whether all rows have length 1, and more than one nonzero.

    While TensorFlow traces a graph there are no values: then it returns
    whether the graph divides the rows by their length last. In a step that
    JAX compiles it returns `False`.

    Args:
        rows: Tensor `(rows, columns)`.

    Example:

    >>> look_like_embeddings(np.array([[0.6, 0.8]]))
    True
    >>> look_like_embeddings(np.eye(2))
    False
    """
    # All rows together would take longer to leave a GPU than to multiply.
    first = known_values(rows[:1])
    if first is None:
        return hasattr(rows, "op") and _divided_by_length(rows)
    return _have_unit_length(first) and _have_unit_length(known_values(rows))


def _have_unit_length(values) -> bool:
    if not len(values) or (np.count_nonzero(values, axis=1) < 2).any():
        return False
    lengths = np.linalg.norm(values.astype("float64"), axis=1)
    return np.allclose(lengths, 1, rtol=0, atol=1e-4)


def _divided_by_length(tensor) -> bool:
    division = _source(tensor, _SAME).op
    return division.type in _DIVISIONS and any(
        _is_length(length, rows)
        for rows, length in itertools.permutations(division.inputs)
    )


def _is_length(tensor, rows) -> bool:
    """Returns whether a tensor of a graph is made of the squares of `rows`."""
    total = _source(tensor, _OF_SUM)
    if total.op.type != "Sum" or [*total.shape] != [*rows.shape[:-1], 1]:
        return False
    squares = total.op.inputs[0].op
    return squares.type in ("Square", "Mul") and all(
        one is rows for one in squares.inputs
    )


def _source(tensor, passed):
    """Returns what a tensor was before some kinds of operations."""
    while tensor.op.type in passed:
        tensor = tensor.op.inputs[0]
    return tensor
