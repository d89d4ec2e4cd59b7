"""Which references are positives of a query."""

import dataclasses
from typing import Any, Self

import numpy as np

from keras_dml.evaluation.labels import as_label_sets, check_comparable


@dataclasses.dataclass(frozen=True)
class Relevance:
    """Queries and references that share a label.

    Only the rows of each label are stored, never all pairs.

    Args:
        codes: 1D int64 array, the labels of the queries one after the other,
            as numbers.
        offsets: 1D int64 array `(num_queries + 1,)` into `codes`.
        members: 1D int64 array, the references of label 0, of label 1, ...,
            ascending in each.
        starts: 1D int64 array `(num_labels + 1,)` into `members`.
        num_references: Integer.
        single: Boolean, whether every image has one label.

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
    single: bool

    @classmethod
    def of(
        cls,
        query_labels: Any,
        num_queries: int,
        reference_labels: Any,
        num_references: int,
    ) -> Self:
        """Reads labels of any form that `as_label_sets` knows.

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
        check_comparable(
            queries, references, "query_labels", "reference_labels"
        )
        names, codes = np.unique(
            np.concatenate([references.values, queries.values]),
            return_inverse=True,
        )
        split = len(references.values)
        order = np.argsort(codes[:split], kind="stable")
        sizes = np.bincount(codes[:split], minlength=len(names))
        return cls(
            codes=codes[split:],
            offsets=queries.offsets,
            members=references.owners[order],
            starts=np.concatenate([[0], np.cumsum(sizes)]),
            num_references=num_references,
            single=queries.single and references.single,
        )

    def take(self, order: np.ndarray) -> Self:
        """The same relevance to `references[order]`."""
        places = np.empty(self.num_references, np.int64)
        places[order] = np.arange(self.num_references)
        members = places[self.members]
        owners = np.repeat(
            np.arange(len(self.starts) - 1), np.diff(self.starts)
        )
        members = members[np.lexsort((members, owners))]
        return dataclasses.replace(self, members=members)

    def rows(self, query: int) -> np.ndarray:
        """Ascending rows of the positives of a query, itself included."""
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
        """Boolean array `(stop - start, num_references)` of positives."""
        block = np.zeros((stop - start, self.num_references), bool)
        for row, query in enumerate(range(start, stop)):
            block[row, self.rows(query)] = True
        return block

    def among(self, columns: np.ndarray) -> np.ndarray:
        """Which of the references named for each query are positives.

        Args:
            columns: 2D integer array `(num_queries, k)` of reference rows.

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
        """How many positives each query has, itself left out.

        Args:
            own: 1D int64 array `(num_queries,)`, the reference that is the
                query itself, -1 where there is none.

        Returns:
            Int64 array `(num_queries,)`.
        """
        counts = np.empty(len(own), np.int64)
        for query, row in enumerate(own):
            positives = self.rows(query)
            place = np.searchsorted(positives, row)
            found = place < len(positives) and positives[place] == row
            counts[query] = len(positives) - int(found)
        return counts
