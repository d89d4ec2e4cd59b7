"""Checks the arrays of a retrieval evaluation."""

import dataclasses
from typing import Any, Self

import numpy as np

from keras_dml.brief import Brief
from keras_dml.embeddings.checks import as_embeddings, as_ids, as_labels
from keras_dml.errors import UsageError
from keras_dml.evaluation.labels import is_multi_label


@dataclasses.dataclass(frozen=True, repr=False)
class RetrievalInputs(Brief):
    """Holds queries and the gallery that they search.

    Args:
        queries: Float32 array `(num_queries, dim)`.
        labels: Labels of the queries, in any form that `as_label_sets` reads.
        query_ids: 1D array `(num_queries,)`, or `None` when no query is in
            the gallery.
        references: Float32 array `(num_references, dim)`.
        reference_labels: Labels of the references.
        reference_ids: 1D array `(num_references,)` or `None`.
        metric: `"cosine"` or `"euclidean"`.
    """

    queries: np.ndarray
    labels: Any
    query_ids: np.ndarray | None
    references: np.ndarray
    reference_labels: Any
    reference_ids: np.ndarray | None
    metric: str

    @classmethod
    def of(
        cls,
        query_embeddings: Any,
        query_labels: Any,
        reference_embeddings: Any,
        reference_labels: Any,
        query_ids: Any,
        reference_ids: Any,
        normalize: bool,
    ) -> Self:
        """Checks and converts the arguments of `evaluate_retrieval`."""
        _check_references(
            reference_embeddings, reference_labels, query_ids, reference_ids
        )
        queries = as_embeddings(query_embeddings, "query_embeddings")
        labels = query_labels
        if not is_multi_label(labels):
            labels = as_labels(labels, len(queries), "query_labels")
        if reference_embeddings is None:
            references, reference_labels = queries, labels
            query_ids = as_ids(query_ids, len(queries), "query_ids")
            reference_ids = query_ids
        else:
            _check_not_itself(query_embeddings, reference_embeddings, query_ids)
            references = as_embeddings(
                reference_embeddings, "reference_embeddings", queries.shape[1]
            )
            if query_ids is not None:
                query_ids = as_ids(query_ids, len(queries), "query_ids")
        return cls(
            queries=queries,
            labels=labels,
            query_ids=query_ids,
            references=references,
            reference_labels=reference_labels,
            reference_ids=reference_ids,
            metric="cosine" if normalize else "euclidean",
        )


def _check_references(
    embeddings: Any, labels: Any, query_ids: Any, reference_ids: Any
) -> None:
    if (embeddings is None) != (labels is None):
        raise UsageError(
            "`reference_embeddings` and `reference_labels` must be given "
            "together. Received: one of them. Give both, or neither to "
            "search the queries."
        )
    if embeddings is None and reference_ids is not None:
        raise UsageError(
            "`reference_ids` needs `reference_embeddings`. Received: "
            "`reference_ids` alone. Name the queries by `query_ids`."
        )
    if embeddings is not None and (query_ids is None) != (
        reference_ids is None
    ):
        raise UsageError(
            "`query_ids` and `reference_ids` must be given together when "
            "there are references. Received: one of them. Give both, or "
            "neither when no query is in the gallery."
        )


def _check_not_itself(queries: Any, references: Any, query_ids: Any) -> None:
    if references is queries and query_ids is None:
        raise UsageError(
            "`reference_embeddings` must not be the `query_embeddings` "
            "themselves, or each query finds itself. Received: one array as "
            "both. Leave the references out, or give ids."
        )
