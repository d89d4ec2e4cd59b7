"""Checks the arrays of a retrieval evaluation."""

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.embeddings.checks import as_embeddings, as_ids, as_labels
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.exact import ExactIndex
from keras_dml.evaluation.labels import is_multi_label
from keras_dml.evaluation.metrics.positive_ranks import PositiveRanks


@dataclasses.dataclass(frozen=True, repr=False)
class RetrievalInputs(Brief):
    """Checks and holds queries and the gallery that they search.

    Args:
        queries: Array `(num_queries, dim)`; stored as float32.
        labels: Labels of the queries, in any form that `as_label_sets` reads.
        references: Array `(num_references, dim)`; stored as float32. Defaults
            to `None`: the queries.
        reference_labels: Labels of the references. Defaults to `None`: those
            of the queries.
        query_ids: 1D array `(num_queries,)`. Defaults to `None`: positions if
            the queries search each other, else no query is in the gallery.
        reference_ids: 1D array `(num_references,)`. Defaults to `None`: those
            of the queries if these search each other, else positions.
        metric: `"cosine"` or `"euclidean"`. Defaults to `"cosine"`.
    """

    queries: Any
    labels: Any
    references: Any = None
    reference_labels: Any = None
    query_ids: Any = None
    reference_ids: Any = None
    metric: str = "cosine"

    def __post_init__(self) -> None:
        self._check_references()
        queries = as_embeddings(self.queries, "query_embeddings")
        values = {"queries": queries}
        if not is_multi_label(self.labels):
            values["labels"] = as_labels(
                self.labels, len(queries), "query_labels"
            )
        if self.references is None or self.query_ids is not None:
            values["query_ids"] = as_ids(
                self.query_ids, len(queries), "query_ids"
            )
        if self.references is None:
            values["references"] = queries
            values["reference_labels"] = values.get("labels", self.labels)
            values["reference_ids"] = values["query_ids"]
        else:
            values["references"] = as_embeddings(
                self.references, "reference_embeddings", queries.shape[1]
            )
        for name, value in values.items():
            # A frozen dataclass can only set its own fields this way.
            object.__setattr__(self, name, value)

    def _check_references(self) -> None:
        _check_together(
            "Give both, or neither to search the queries.",
            reference_embeddings=self.references,
            reference_labels=self.reference_labels,
        )
        if self.references is not None:
            _check_together(
                "Give both, or neither when no query is in the gallery.",
                query_ids=self.query_ids,
                reference_ids=self.reference_ids,
            )
        elif self.reference_ids is not None:
            raise UsageError(
                "`reference_ids` needs `reference_embeddings`. Received: "
                "`reference_ids` alone. Name the queries by `query_ids`."
            )
        if self.references is self.queries and self.query_ids is None:
            raise UsageError(
                "`reference_embeddings` must not be the `query_embeddings` "
                "themselves, or each query finds itself. Received: one array "
                "as both. Leave the references out, or give ids."
            )

    @functools.cached_property
    def index(self) -> ExactIndex:
        """The `ExactIndex` of the references."""
        return ExactIndex(self.metric).build(
            self.references, self.reference_ids
        )

    def positive_rank_blocks(
        self, queries: np.ndarray | None = None
    ) -> Iterator[PositiveRanks]:
        """Yields the ranks of the positives, one block of queries at a time.

        Args:
            queries: Array `(num_queries, dim)` to search with. Defaults to
                `None`: `queries`.
        """
        return self.index.positive_rank_blocks(
            self.queries if queries is None else queries,
            self.labels,
            self.reference_labels,
            self.query_ids,
        )


def _check_together(advice: str, **values: Any) -> None:
    given = [name for name, value in values.items() if value is not None]
    if len(given) == 1:
        names = " and ".join(f"`{name}`" for name in values)
        raise UsageError(
            f"{names} must be given together. Received: `{given[0]}` alone. "
            f"{advice}"
        )
