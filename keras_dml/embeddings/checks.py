"""Checks and converts the arrays of an evaluation."""

import itertools
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

from keras_dml.checks import of_shape, positive_integer, require
from keras_dml.errors import UsageError, reason_of
from keras_dml.naming import shown

# A generator may have no end.
MOST_VALUES = 1000
# Of a text, as of a path on Linux: each row takes as much as the longest.
MOST_CHARACTERS = 4096


def as_array(values: Any, name: str, wanted: str) -> np.ndarray:
    """Returns values as an array.

    Args:
        values: Array, tensor or list.
        name: String, the name of the argument in errors.
        wanted: String, what the argument must be, in words.

    Raises:
        UsageError: If rows have different lengths.
    """
    try:
        return np.asarray(values)
    except ValueError as error:
        raise UsageError(
            f"`{name}` must be {wanted}. Received: {shown(values)} "
            f"({reason_of(error)})"
        ) from error


def as_embeddings(
    embeddings: Any,
    name: str = "embeddings",
    dim: int | None = None,
    min_rows: int = 1,
) -> np.ndarray:
    """Returns embeddings as contiguous float32 rows.

    Args:
        embeddings: 2D array or tensor `(rows, dim)` of floats or integers.
        name: String, the name of the argument in errors. Defaults to
            `"embeddings"`.
        dim: Integer, the required number of columns, or `None` for any.
            Defaults to `None`.
        min_rows: Integer, the smallest number of rows; `0` allows an array
            without rows. Defaults to `1`.

    Returns:
        Float32 array `(rows, dim)`; the input itself if it already is one.

    Raises:
        UsageError: If the shape or dtype is wrong, there are too few rows, or
            a value is not finite in float32.
    """
    array = as_array(embeddings, name, "rows of equally many numbers")
    advice = "Give one row for each image, all embedded with one model."
    of_shape(name, array, "rows", dim or "dim", advice=advice)
    if array.shape[1] == 0 or len(array) < min_rows:
        raise UsageError(
            f"`{name}` must have at least one row and one column. "
            f"Received: shape={array.shape}. Check that images were found."
        )
    if array.dtype.kind not in "fiu" and array.dtype.name != "bfloat16":
        raise UsageError(
            f"`{name}` must hold real numbers. Received: dtype={array.dtype}. "
            "Convert it to float32."
        )
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(array, dtype=np.float32)
    finite = np.isfinite(array).all(axis=1)
    if not finite.all():
        raise UsageError(
            f"`{name}` must be finite in float32. Received: "
            f"{np.count_nonzero(~finite)} row(s) with NaN or infinity, the "
            f"first is row {np.argmin(finite)}. Check the model that made it."
        )
    return array


def as_labels(labels: Any, num_rows: int, name: str) -> np.ndarray:
    """Returns a 1D array of integers or strings, one for each row."""
    wanted = "one integer or string a row"
    if not isinstance(labels, list | tuple):
        labels = as_array(labels, name, wanted)
    check_texts(labels, name)
    array = as_array(labels, name, wanted)
    of_shape(name, array, num_rows, advice="Give one for each embedding.")
    # NumPy would make strings of the integers of a list with both.
    listed = isinstance(labels, list | tuple) and array.dtype.kind == "U"
    if listed or array.dtype.kind == "O":
        values = list(labels) if listed else array.tolist()
        array = _of_one_kind(values, array, name)
    if not array.size and array.dtype.kind not in "US":
        array = array.astype(np.int64)
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(
                f"`{name}` must hold text in UTF-8. Received: {error}. Store "
                "strings or integers."
            ) from error
    if array.dtype.kind in "iub":
        if array.dtype == np.uint64 and (array > np.iinfo(np.int64).max).any():
            raise UsageError(
                f"`{name}` must be below 2**63. Received: {array.max()}."
            )
        return array.astype(np.int64)
    if array.dtype.kind == "U":
        return array
    raise UsageError(
        f"`{name}` must hold integers or strings. "
        f"Received: dtype={array.dtype}. Convert it first."
    )


def check_texts(values: Any, name: str) -> None:
    """Raises if one of the values is a text too long for an array.

    Args:
        values: Array, or list of anything.
        name: String, the name of the argument in the error.

    Raises:
        UsageError: If a text has more than `MOST_CHARACTERS`.
    """
    kind = values.dtype.kind if isinstance(values, np.ndarray) else "O"
    longest = 0
    if kind in "US":
        longest = int(np.char.str_len(values).max(initial=0))
    elif kind == "O":
        flat = values.flat if isinstance(values, np.ndarray) else values
        lengths = (len(one) for one in flat if isinstance(one, str | bytes))
        longest = max(lengths, default=0)
    if longest > MOST_CHARACTERS:
        raise UsageError(
            f"`{name}` must hold texts of at most {MOST_CHARACTERS:,} "
            f"characters. Received: one of {longest:,}. Shorten it, for each "
            "row of an array takes as much memory as the longest."
        )


def _of_one_kind(values: list, array: np.ndarray, name: str) -> np.ndarray:
    """Returns integers or strings that were objects as an array of these."""
    strings = [isinstance(one, str) for one in values]
    unmixed = all(strings) or not any(strings)
    advice = "Convert some of them."
    require(unmixed, name, "all integers or all strings", values, advice)
    # TensorFlow's texts are objects, each of them bytes.
    for kind in (str, bytes, Integral):
        if all(isinstance(one, kind) for one in values):
            return np.asarray(values)
    return array


def as_label_matrix(labels: Any, name: str) -> np.ndarray:
    """Returns a matrix of booleans or of 0 and 1, one column a class."""
    matrix = np.asarray(labels)
    require(
        matrix.shape[1] != 1 or matrix.dtype.kind == "b",
        name,
        "labels of shape (rows,), or a column for each of two classes or more",
        f"shape {matrix.shape}",
        "Flatten it with `labels.reshape(-1)`.",
    )
    if matrix.dtype.kind != "b" and not (
        matrix.dtype.kind in "iu" and np.isin(matrix, (0, 1)).all()
    ):
        raise UsageError(
            f"`{name}` as a matrix must hold nothing but 0 and 1, or "
            f"booleans. Received: dtype={matrix.dtype}. Mark the classes of "
            "each row, one column for each class."
        )
    return matrix


def as_ids(ids: Any, num_rows: int, name: str) -> np.ndarray:
    """Returns a 1D array of integers or strings; `0, 1, ...` for `None`."""
    return (
        np.arange(num_rows) if ids is None else as_labels(ids, num_rows, name)
    )


def as_unique_ids(ids: Any, num_rows: int, name: str = "ids") -> np.ndarray:
    """Returns `as_ids`, if none repeats."""
    ids = as_ids(ids, num_rows, name)
    unique, counts = np.unique(ids, return_counts=True)
    if len(unique) < len(ids):
        raise UsageError(
            f"`{name}` must be unique, for a query is told from its references "
            f"by id. Received: {unique[counts > 1][0].item()!r} more than "
            "once. Give each image its own id."
        )
    return ids


def check_same_kind(
    left: np.ndarray, right: np.ndarray, left_name: str, right_name: str
) -> None:
    """Raises if one array holds integers and the other one strings."""
    differ = (left.dtype.kind == "U") != (right.dtype.kind == "U")
    if differ and left.size and right.size:
        raise UsageError(
            f"`{left_name}` and `{right_name}` must both be integers or both "
            f"strings. Received: {left.dtype} and {right.dtype}. Convert one "
            "of them."
        )


def one_or_several(values: Any, name: str) -> tuple[Any, ...]:
    """Returns a tuple of one value or several, which may be a generator."""
    if (
        isinstance(values, str | bytes)
        or not isinstance(values, Iterable)
        or getattr(values, "ndim", 1) == 0
    ):
        return (values.item() if isinstance(values, np.ndarray) else values,)
    several = tuple(itertools.islice(values, MOST_VALUES + 1))
    wanted = f"at most {MOST_VALUES:,} values"
    require(len(several) <= MOST_VALUES, name, wanted, values)
    return several


def as_counts(k: Any, name: str = "k") -> tuple[int, ...]:
    """Returns a tuple of positive integers from one integer or several."""
    values = one_or_several(k, name)
    require(values, name, "a positive integer, or several", k)
    return tuple(positive_integer(name, one, "Count from 1.") for one in values)
