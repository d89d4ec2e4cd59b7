"""Ranks of the positives of each query, the input of all metrics."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import of_shape, require
from keras_dml.embeddings.checks import as_array
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.labels import Relevance


@dataclasses.dataclass(frozen=True, repr=False)
class PositiveRanks(Brief):
    """Stores the ranks at which each query finds its positives.

    Positives are the references that share its label, or one of its labels.
    The ranks of query `i` are `ranks[offsets[i]:offsets[i + 1]]`. A query
    without any positive is lone: its slice is empty and the metrics leave it
    out.

    Args:
        ranks: 1D int64 array, counted from 1 and ascending for each query.
            The query itself is not a reference and has no rank.
        offsets: 1D int64 array `(num_queries + 1,)`.
        num_references: Integer, the size of the gallery.
        num_positives: 1D int64 array `(num_queries,)`, how many positives the
            gallery holds. Defaults to `None`: the lengths of the slices,
            which is correct unless ranks beyond `max_rank` were dropped.
        max_rank: Integer, the rank beyond which ranks were dropped, or `None`
            if none were dropped. Defaults to `None`.

    Example:

    >>> PositiveRanks([1, 4, 2], [0, 2, 2, 3], num_references=5).num_lone
    1
    """

    ranks: np.ndarray
    offsets: np.ndarray
    num_references: int
    num_positives: np.ndarray | None = None
    max_rank: int | None = None

    def __post_init__(self) -> None:
        lengths = np.diff(np.asarray(self.offsets, np.int64))
        counts = lengths if self.num_positives is None else self.num_positives
        # A frozen dataclass can only set its own fields this way.
        for name in ("ranks", "offsets"):
            value = np.asarray(getattr(self, name), np.int64)
            object.__setattr__(self, name, value)
        counts = np.asarray(counts, np.int64)
        object.__setattr__(self, "num_positives", counts)
        if self.offsets[0] != 0 or self.offsets[-1] != len(self.ranks):
            raise ValueError(
                "`offsets` must begin with 0 and end with the number of "
                f"ranks. Received: offsets={self.offsets} for "
                f"{len(self.ranks)} ranks. Count every rank once."
            )
        if counts.shape != lengths.shape:
            raise ValueError(
                "`num_positives` must have one entry for each query. "
                f"Received: shape={counts.shape} for {len(lengths)} queries. "
                "Give one count for each slice of `offsets`."
            )

    @property
    def num_queries(self) -> int:
        """The number of queries, including lone ones."""
        return len(self.offsets) - 1

    @property
    def lone(self) -> np.ndarray:
        """Boolean array `(num_queries,)`, true for queries without positive."""
        return np.asarray(self.num_positives) == 0

    @property
    def num_lone(self) -> int:
        """The number of queries without a positive."""
        return int(np.count_nonzero(self.lone))

    @property
    def owners(self) -> np.ndarray:
        """Int64 array as long as `ranks`, the query of each rank."""
        return np.repeat(np.arange(self.num_queries), np.diff(self.offsets))

    def up_to(self, max_rank: int) -> "PositiveRanks":
        """Returns the ranks without those beyond `max_rank`."""
        if self.max_rank is not None:
            max_rank = min(max_rank, self.max_rank)
        kept = self.ranks <= max_rank
        lengths = np.bincount(self.owners[kept], minlength=self.num_queries)
        return dataclasses.replace(
            self,
            ranks=self.ranks[kept],
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            max_rank=max_rank,
        )

    @staticmethod
    def concatenate(parts: Sequence["PositiveRanks"]) -> "PositiveRanks":
        """Joins blocks of queries that searched the same gallery.

        All are cut at the smallest `max_rank` of any of them.
        """
        cuts = [part.max_rank for part in parts if part.max_rank is not None]
        if cuts:
            parts = [part.up_to(min(cuts)) for part in parts]
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return PositiveRanks(
            ranks=np.concatenate([part.ranks for part in parts]),
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            num_references=parts[0].num_references,
            num_positives=np.concatenate(
                [part.num_positives for part in parts]
            ),
            max_rank=parts[0].max_rank,
        )


def ranks_from_ids(
    neighbor_ids: Any,
    query_labels: Any,
    reference_ids: Any,
    reference_labels: Any,
    query_ids: Any = None,
) -> PositiveRanks:
    """Finds the ranks of the positives in lists of neighbors of any index.

    A query's own id is skipped wherever it occurs in the query's list. Lists
    shorter than the gallery give the ranks up to their length; positives are
    always counted in the whole gallery.

    Args:
        neighbor_ids: 2D array `(num_queries, k)` of reference ids, nearest
            first, as `Index.search` returns them.
        query_labels: 1D array `(num_queries,)` of integers or strings, or
            several labels for each query: a boolean matrix
            `(num_queries, classes)` or a list of sets.
        reference_ids: 1D array `(num_references,)` of integers or strings.
        reference_labels: The labels of each id, in the same form.
        query_ids: 1D array `(num_queries,)`, or `None` when no query is in
            the gallery. Defaults to `None`.

    Returns:
        `PositiveRanks`, cut at the length of the lists unless each holds all
        references but the query itself.

    Raises:
        UsageError: If lengths do not match, an id is unknown, or ids repeat
            among the references or in a list.

    Example:

    >>> found = ranks_from_ids([[7, 5, 9]], [0], [5, 7, 9], [0, 1, 0])
    >>> found.ranks
    array([2, 3])
    """
    wanted = "lists of equally many ids"
    neighbors = as_array(neighbor_ids, "neighbor_ids", wanted)
    advice = "Give one list a query."
    of_shape("neighbor_ids", neighbors, "num_queries", "k", advice=advice)
    num_queries = len(neighbors)
    ids = as_array(reference_ids, "reference_ids", "one id a reference")
    num_references = len(of_shape("reference_ids", ids, "num_references"))
    table = IdTable.of(reference_ids, num_references, "reference_ids")
    relevance = Relevance.of(
        query_labels, num_queries, reference_labels, num_references
    )
    found = table.rows_of_lists(neighbors, "neighbor_ids")
    unknown = neighbors[found < 0][:4].tolist()
    wanted, advice = "among `reference_ids`", "Search the index of these."
    require(not unknown, "neighbor_ids", wanted, unknown, advice)
    _check_distinct(found, neighbors)
    own = table.rows_of(query_ids, num_queries, "query_ids")
    is_own = found == own[:, None]
    positive = relevance.among(found) & ~is_own
    ranks = np.cumsum(~is_own, axis=1)
    reached = np.count_nonzero(~is_own, axis=1)
    listed = PositiveRanks(
        ranks=ranks[positive],
        offsets=np.concatenate([[0], np.cumsum(positive.sum(axis=1))]),
        num_references=num_references,
        num_positives=relevance.counts(own),
    )
    if (reached == num_references - (own >= 0)).all():
        return listed
    return listed.up_to(int(reached.min()))


def _check_distinct(found: np.ndarray, neighbors: np.ndarray) -> None:
    """Raises if a list holds a reference twice, which would count twice."""
    again = (np.diff(np.sort(found, axis=1), axis=1) == 0).any(axis=1)
    repeating = neighbors[again][:1].tolist()
    wanted, advice = "in each list once", "Leave out what repeats."
    require(not repeating, "neighbor_ids", wanted, repeating, advice)
