"""Retrieval metrics, exact search and clustering, in numpy alone."""

from keras_dml.evaluation.clustering import (
    cluster,
    normalized_mutual_information,
)
from keras_dml.evaluation.exact_index import ExactIndex
from keras_dml.evaluation.index import Index
from keras_dml.evaluation.metrics import (
    average_precision,
    map_at_r,
    mean_over_queries,
    precision_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
)
from keras_dml.evaluation.positive_ranks import PositiveRanks, ranks_from_ids
from keras_dml.evaluation.retrieval import (
    RetrievalResult,
    evaluate_retrieval,
    retrieval_metrics,
)

__all__ = [
    "ExactIndex",
    "Index",
    "PositiveRanks",
    "RetrievalResult",
    "average_precision",
    "cluster",
    "evaluate_retrieval",
    "map_at_r",
    "mean_over_queries",
    "normalized_mutual_information",
    "precision_at_k",
    "r_precision",
    "ranks_from_ids",
    "recall_at_k",
    "reciprocal_rank",
    "retrieval_metrics",
]
