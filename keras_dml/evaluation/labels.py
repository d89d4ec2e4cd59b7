"""Labels of images: one for each, or several."""

import dataclasses
from typing import Any

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.evaluation.validation import as_labels, check_same_kind


@dataclasses.dataclass(frozen=True)
class LabelSets:
    """The labels of every row, one after the other.

    Those of row `i` are `values[offsets[i]:offsets[i + 1]]`.

    Args:
        values: 1D array of integers or strings.
        offsets: 1D int64 array `(rows + 1,)`.
        num_columns: Integer, the width of the matrix that they came from, or
            `None` when they were no matrix. Defaults to `None`.
    """

    values: np.ndarray
    offsets: np.ndarray
    num_columns: int | None = None

    @property
    def single(self) -> bool:
        """Whether every row has exactly one label."""
        return bool((np.diff(self.offsets) == 1).all())

    @property
    def owners(self) -> np.ndarray:
        """Int64 array as long as `values`, the row that each belongs to."""
        return np.repeat(np.arange(len(self.offsets) - 1), self.lengths)

    @property
    def lengths(self) -> np.ndarray:
        """Int64 array `(rows,)`, how many labels each row has."""
        return np.diff(self.offsets)


def is_multi_label(labels: Any) -> bool:
    """Whether labels are sets or a matrix, and not one label for each row."""
    return _are_sets(labels) or np.ndim(labels) == 2


def as_label_sets(labels: Any, num_rows: int, name: str) -> LabelSets:
    """Reads labels of any form.

    Args:
        labels: 1D array `(rows,)` of integers or strings, a boolean or 0-1
            matrix `(rows, classes)`, or a list of sets.
        num_rows: Integer, how many rows there must be.
        name: How an error names the argument.

    Returns:
        `LabelSets`; the labels of a matrix are its column numbers.

    Raises:
        UsageError: If the labels have no such form, or a wrong length.

    Example:

    >>> as_label_sets([[1, 0, 1], [0, 1, 0]], 2, "labels").values
    array([0, 2, 1])
    """
    if _are_sets(labels):
        return _from_sets(labels, num_rows, name)
    if np.ndim(labels) == 2:
        return _from_matrix(np.asarray(labels), num_rows, name)
    values = as_labels(labels, num_rows, name)
    return LabelSets(values, np.arange(num_rows + 1))


def check_comparable(
    left: LabelSets, right: LabelSets, left_name: str, right_name: str
) -> None:
    """Refuses labels of two forms, which can never be equal."""
    if left.values.size and right.values.size:
        check_same_kind(left.values, right.values, left_name, right_name)
    if left.num_columns != right.num_columns:
        raise UsageError(
            f"`{left_name}` and `{right_name}` must have one form, and as "
            "matrices the same classes as columns. Received: "
            f"{_form(left)} and {_form(right)}. Encode both alike."
        )


def _are_sets(labels: Any) -> bool:
    is_list = isinstance(labels, list | tuple) or (
        isinstance(labels, np.ndarray) and labels.dtype == object
    )
    return (
        is_list
        and len(labels) > 0
        and all(isinstance(row, set | frozenset) for row in labels)
    )


def _from_sets(labels: Any, num_rows: int, name: str) -> LabelSets:
    _check_length(len(labels), num_rows, name)
    flat = [label for row in labels for label in sorted(row)]
    values = as_labels(flat, len(flat), name) if flat else np.zeros(0, int)
    lengths = [len(row) for row in labels]
    return LabelSets(values, np.concatenate([[0], np.cumsum(lengths)]))


def _from_matrix(matrix: np.ndarray, num_rows: int, name: str) -> LabelSets:
    _check_length(len(matrix), num_rows, name)
    if matrix.dtype.kind not in "iub" or not np.isin(matrix, (0, 1)).all():
        raise UsageError(
            f"`{name}` as a matrix must hold nothing but 0 and 1, or "
            f"booleans. Received: dtype={matrix.dtype}. Mark the classes of "
            "each row, one column for each class."
        )
    rows, columns = np.nonzero(matrix)
    lengths = np.bincount(rows, minlength=len(matrix))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return LabelSets(columns, offsets, matrix.shape[1])


def _check_length(length: int, num_rows: int, name: str) -> None:
    if length != num_rows:
        raise UsageError(
            f"`{name}` must have one row or set for each of {num_rows} "
            f"embeddings. Received: {length}. Give each embedding its labels."
        )


def _form(labels: LabelSets) -> str:
    if labels.num_columns is None:
        return "labels that are no matrix"
    return f"a matrix of {labels.num_columns} classes"
