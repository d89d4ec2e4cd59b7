"""Labels of images: one or several for each image."""

import dataclasses
from typing import Any, Self

import numpy as np

from keras_dml.embeddings.checks import (
    as_label_matrix,
    as_labels,
    check_same_kind,
)
from keras_dml.errors import UsageError


@dataclasses.dataclass(frozen=True)
class LabelSets:
    """Stores the labels of all rows in one flat array.

    Args:
        values: 1D array of integers or strings, the labels of the first row,
            then those of the second, and so on.
        owners: 1D int64 array as long as `values`, the row of each label.
        num_columns: Integer, the number of columns if the labels were given
            as a matrix, else `None`. Defaults to `None`.
    """

    values: np.ndarray
    owners: np.ndarray
    num_columns: int | None = None


def is_multi_label(labels: Any) -> bool:
    """Returns whether labels are sets or a matrix, not one label per row."""
    try:
        return _are_sets(labels) or np.ndim(labels) == 2
    except ValueError:  # Rows of different lengths, which `as_labels` refuses.
        return False


def as_label_sets(labels: Any, num_rows: int, name: str) -> LabelSets:
    """Reads labels of any form.

    Args:
        labels: 1D array `(rows,)` of integers or strings, a boolean or 0-1
            matrix `(rows, classes)`, or a list of sets.
        num_rows: Integer, the expected number of rows.
        name: String, the name of the argument in errors.

    Returns:
        `LabelSets`; the labels of a matrix are its column numbers.

    Raises:
        UsageError: If the labels have another form or a wrong length.

    Example:

    >>> as_label_sets([[1, 0, 1], [0, 1, 0]], 2, "labels").values
    array([0, 2, 1])
    """
    if not is_multi_label(labels):
        return LabelSets(as_labels(labels, num_rows, name), np.arange(num_rows))
    if len(labels) != num_rows:
        raise UsageError(
            f"`{name}` must have one row or set for each of {num_rows} "
            f"embeddings. Received: {len(labels)}. Give each embedding its "
            "labels."
        )
    read = _from_sets if _are_sets(labels) else _from_matrix
    return read(labels, name)


def has_label(labels: Any, classes: Any) -> np.ndarray:
    """Marks the rows that have one of the given labels.

    Args:
        labels: Labels of any form that `as_label_sets` reads.
        classes: Labels; column numbers for a matrix.

    Returns:
        Boolean array `(rows,)`.

    Example:

    >>> has_label([{1}, {2, 3}, {1, 3}], [3]).tolist()
    [False, True, True]
    """
    sets = as_label_sets(labels, len(labels), "labels")
    marked = np.zeros(len(labels), bool)
    marked[sets.owners[np.isin(sets.values, classes)]] = True
    return marked


def _are_sets(labels: Any) -> bool:
    if isinstance(labels, np.ndarray) and labels.dtype == object:
        labels = labels.tolist()
    return (
        isinstance(labels, list | tuple)
        and len(labels) > 0
        and all(isinstance(row, set | frozenset) for row in labels)
    )


def _from_sets(labels: Any, name: str) -> LabelSets:
    flat = [label for row in labels for label in row]
    values = as_labels(flat, len(flat), name)
    lengths = [len(row) for row in labels]
    owners = np.repeat(np.arange(len(labels)), lengths)
    return LabelSets(values[np.lexsort((values, owners))], owners)


def _from_matrix(labels: Any, name: str) -> LabelSets:
    matrix = as_label_matrix(labels, name)
    rows, columns = np.nonzero(matrix)
    return LabelSets(columns, rows, matrix.shape[1])


def _check_comparable(queries: LabelSets, references: LabelSets) -> None:
    """Raises if labels have different forms and so can never be equal."""
    names = "query_labels", "reference_labels"
    check_same_kind(queries.values, references.values, *names)
    if queries.num_columns != references.num_columns:
        raise UsageError(
            "`query_labels` and `reference_labels` must have one form, and as "
            "matrices the same classes as columns. Received: "
            f"{queries.num_columns} and {references.num_columns} columns, "
            "where None is no matrix. Encode both alike."
        )


@dataclasses.dataclass(frozen=True)
class Relevance:
    """Finds the references that share a label with a query.

    It stores only the rows of each label, never all pairs.

    Args:
        codes: 1D int64 array, the labels of all queries in one flat array,
            as numbers.
        offsets: 1D int64 array `(num_queries + 1,)` into `codes`.
        members: 1D int64 array, the references with label 0, then those with
            label 1, and so on, ascending for each label.
        starts: 1D int64 array `(num_labels + 1,)` into `members`.
        num_references: Integer.

    Example:

    >>> relevance = Relevance.of([{1, 2}], 1, [{1}, {3}, {2, 3}], 3)
    >>> relevance.rows(0)
    array([0, 2])
    """

    codes: np.ndarray
    offsets: np.ndarray
    members: np.ndarray
    starts: np.ndarray
    num_references: int

    @classmethod
    def of(
        cls,
        query_labels: Any,
        num_queries: int,
        reference_labels: Any,
        num_references: int,
    ) -> Self:
        """Compares labels of any form that `as_label_sets` reads.

        Args:
            query_labels: Labels of `num_queries` rows.
            num_queries: Integer.
            reference_labels: Labels of `num_references` rows.
            num_references: Integer.

        Raises:
            UsageError: If labels have no known form or cannot be compared.
        """
        queries = as_label_sets(query_labels, num_queries, "query_labels")
        references = as_label_sets(
            reference_labels, num_references, "reference_labels"
        )
        _check_comparable(queries, references)
        names, codes = np.unique(
            np.concatenate([references.values, queries.values]),
            return_inverse=True,
        )
        split = len(references.values)
        order = np.argsort(codes[:split], kind="stable")
        sizes = np.bincount(codes[:split], minlength=len(names))
        return cls(
            codes=codes[split:],
            offsets=np.searchsorted(queries.owners, np.arange(num_queries + 1)),
            members=references.owners[order],
            starts=np.concatenate([[0], np.cumsum(sizes)]),
            num_references=num_references,
        )

    def take(self, order: np.ndarray) -> Self:
        """Returns the relevance of `references[order]` to the queries."""
        members = np.argsort(order)[self.members]
        owners = np.repeat(
            np.arange(len(self.starts) - 1), np.diff(self.starts)
        )
        members = members[np.lexsort((members, owners))]
        return dataclasses.replace(self, members=members)

    def rows(self, query: int) -> np.ndarray:
        """Returns ascending rows of a query's positives, itself included."""
        codes = self.codes[self.offsets[query] : self.offsets[query + 1]]
        parts = [
            self.members[self.starts[code] : self.starts[code + 1]]
            for code in codes
        ]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return self.members[:0]
        return np.unique(np.concatenate(parts))

    def block(self, start: int, stop: int) -> np.ndarray:
        """Marks positives: boolean `(stop - start, num_references)`."""
        block = np.zeros((stop - start, self.num_references), bool)
        for row, query in enumerate(range(start, stop)):
            block[row, self.rows(query)] = True
        return block

    def among(self, columns: np.ndarray) -> np.ndarray:
        """Returns which of the references listed per query are positives.

        Args:
            columns: 2D integer array `(num_queries, k)`, the rows of the
                references listed for each query.

        Returns:
            Boolean array `(num_queries, k)`.
        """
        found = np.empty(columns.shape, bool)
        marks = np.zeros(self.num_references, bool)
        for query, row in enumerate(columns):
            positives = self.rows(query)
            marks[positives] = True
            found[query] = marks[row]
            marks[positives] = False
        return found

    def counts(self, own: np.ndarray) -> np.ndarray:
        """Counts the positives of each query, without the query itself.

        Args:
            own: 1D int64 array `(num_queries,)`, the row of the reference
                that is the query itself, or -1.

        Returns:
            Int64 array `(num_queries,)`.
        """
        counts = [
            np.count_nonzero(self.rows(query) != row)
            for query, row in enumerate(own)
        ]
        return np.array(counts, np.int64)
