"""Checks and converts the arrays of an evaluation."""

from typing import Any

import numpy as np

from keras_dml.errors import UsageError


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
    array = np.asarray(embeddings)
    if array.ndim != 2 or array.shape[1] == 0:
        raise UsageError(
            f"`{name}` must have the shape `(rows, dim)`. "
            f"Received: shape={array.shape}. Give one row for each image."
        )
    if array.shape[0] < min_rows:
        raise UsageError(
            f"`{name}` must have at least one row. "
            f"Received: shape={array.shape}. Check that images were found."
        )
    if dim is not None and array.shape[1] != dim:
        raise UsageError(
            f"`{name}` must have {dim} columns as the references have. "
            f"Received: shape={array.shape}. Embed both with one model."
        )
    is_number = array.dtype.kind in "fiu" or array.dtype.name == "bfloat16"
    if not is_number:
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
    array = np.asarray(labels)
    if array.ndim != 1 or len(array) != num_rows:
        raise UsageError(
            f"`{name}` must have the shape `({num_rows},)`, one label for "
            f"each embedding. Received: shape={array.shape}. Give each "
            "embedding its class."
        )
    return _integers_or_strings(array, name)


def as_ids(ids: Any, num_rows: int, name: str) -> np.ndarray:
    """Returns a 1D array of integers or strings; `0, 1, ...` for `None`."""
    if ids is None:
        return np.arange(num_rows)
    array = np.asarray(ids)
    if array.ndim != 1 or len(array) != num_rows:
        raise UsageError(
            f"`{name}` must have the shape `({num_rows},)`, one id for each "
            f"embedding. Received: shape={array.shape}. Give each embedding "
            "its id, or leave the argument out."
        )
    return _integers_or_strings(array, name)


def check_same_kind(
    left: np.ndarray, right: np.ndarray, left_name: str, right_name: str
) -> None:
    """Raises if one array holds integers and the other one strings."""
    if (left.dtype.kind == "U") != (right.dtype.kind == "U"):
        raise UsageError(
            f"`{left_name}` and `{right_name}` must both be integers or both "
            f"strings. Received: {left.dtype} and {right.dtype}. Convert one "
            "of them."
        )


def as_counts(k: Any, name: str = "k") -> tuple[int, ...]:
    """Returns a tuple of positive integers from one integer or several."""
    values = (k,) if isinstance(k, int | np.integer) else tuple(k)
    for value in values:
        is_integer = isinstance(value, int | np.integer)
        if not is_integer or isinstance(value, bool) or value < 1:
            raise UsageError(
                f"`{name}` must be a positive integer or several of them. "
                f"Received: {name}={k}. Count from 1."
            )
    return tuple(int(value) for value in values)


def _integers_or_strings(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind == "O" and all(isinstance(x, str) for x in array):
        array = array.astype(str)
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    if array.dtype.kind == "U":
        return array
    raise UsageError(
        f"`{name}` must hold integers or strings. "
        f"Received: dtype={array.dtype}. Convert it first."
    )
