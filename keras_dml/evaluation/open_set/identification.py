"""Open-set identification: finds the class of a query, or none."""

import dataclasses
from typing import Any

import numpy as np

from keras_dml.brief import Brief
from keras_dml.checks import require
from keras_dml.embeddings.checks import as_embeddings
from keras_dml.evaluation.index.exact import ExactIndex
from keras_dml.evaluation.index.spaces import metric_of


@dataclasses.dataclass(frozen=True, repr=False)
class IdentificationRates(Brief):
    """Error rates of a gallery search that may answer "none".

    Args:
        fpir: Float, the false-positive identification rate: the share of
            queries without a positive in the gallery that get an answer. NaN
            when there are no such queries.
        fnir: Float, the false-negative identification rate: the share of
            queries with a positive that get no answer or a wrong class. NaN
            when there are no such queries.
        num_unknown: Integer, the number of queries without a positive.
        num_known: Integer, the number of queries with a positive.
        score: Float, the threshold.
    """

    fpir: float
    fnir: float
    num_unknown: int
    num_known: int
    score: float


def identification_rates(
    query_embeddings: Any,
    query_labels: Any,
    reference_embeddings: Any,
    reference_labels: Any,
    score: float,
    *,
    query_ids: Any = None,
    reference_ids: Any = None,
    normalize: bool = True,
) -> IdentificationRates:
    """Measures the errors of a threshold on queries and a gallery.

    The answer is the class of the nearest reference if its score reaches the
    threshold. If references of the query's class and of another class are
    equally near, the answer counts as wrong.

    Args:
        query_embeddings: Array `(num_queries, dim)`.
        query_labels: Labels of the queries. Queries whose labels are not in
            the gallery are unknown.
        reference_embeddings: Array `(num_references, dim)`.
        reference_labels: Labels of the references.
        score: Float, such as `Threshold.score`.
        query_ids: 1D array `(num_queries,)`; a query ignores the reference
            with its own id. Defaults to `None`.
        reference_ids: 1D array `(num_references,)`. Defaults to `None`:
            positions.
        normalize: Boolean, whether scores are cosines; otherwise they are
            negative squared distances. Defaults to `True`.

    Returns:
        `IdentificationRates`.

    Raises:
        UsageError: If arrays do not match.

    Example:

    >>> gallery = [[1.0, 0.0], [0.0, 1.0]]
    >>> queries = [[0.9, 0.1], [-1.0, 0.1]]
    >>> rates = identification_rates(queries, [0, 7], gallery, [0, 1], 0.5)
    >>> rates.fpir, rates.fnir
    (0.0, 0.0)

    Reference:
        Grother, Ngan and Hanaoka, "Face Recognition Vendor Test, Part 2:
        Identification", NISTIR 8271, section 3.
    """
    advice = "Calibrate it with `calibrate_threshold`."
    known = isinstance(score, int | float | np.number)
    number = known and not np.isnan(score)
    require(number, "score", "a number", score, advice)
    queries = as_embeddings(query_embeddings, "query_embeddings")
    references = as_embeddings(
        reference_embeddings, "reference_embeddings", queries.shape[1]
    )
    index = ExactIndex(metric_of(normalize))
    genuine, impostor = index.build(references, reference_ids).nearest_scores(
        queries, query_labels, reference_labels, query_ids
    )
    known = np.isfinite(genuine)
    right = (genuine >= score) & (genuine > impostor)
    return IdentificationRates(
        fpir=_mean(impostor[~known] >= score),
        fnir=_mean(~right[known]),
        num_unknown=int(np.count_nonzero(~known)),
        num_known=int(np.count_nonzero(known)),
        score=float(score),
    )


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
