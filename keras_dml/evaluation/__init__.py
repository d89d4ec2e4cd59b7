# ruff: noqa: F401
"""Search, retrieval metrics, thresholds, re-ranking and clustering.

This package needs only NumPy, SciPy and scikit-learn, and ScaNN for
`ScannIndex`. It works on arrays of embeddings, never on models.
"""

from keras_dml.evaluation.index.ann_recall import (
    IndexEvaluation,
    ann_recall_at_k,
    evaluate_index,
)
from keras_dml.evaluation.index.base import Index
from keras_dml.evaluation.index.exact import ExactIndex
from keras_dml.evaluation.index.registry import load_index, make_index
from keras_dml.evaluation.index.scann import ScannIndex
from keras_dml.evaluation.measured import Measured, evaluate
from keras_dml.evaluation.metrics.by_query import (
    average_precision,
    map_at_k,
    map_at_r,
    mean_over_queries,
    precision_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
)
from keras_dml.evaluation.metrics.clustering import (
    adjusted_mutual_information,
    cluster,
    normalized_mutual_information,
)
from keras_dml.evaluation.metrics.metric_names import metric_function
from keras_dml.evaluation.metrics.positive_ranks import (
    PositiveRanks,
    ranks_from_ids,
)
from keras_dml.evaluation.open_set.identification import (
    IdentificationRates,
    identification_rates,
)
from keras_dml.evaluation.open_set.thresholds import (
    Threshold,
    calibrate_threshold,
    calibrate_thresholds,
)
from keras_dml.evaluation.reranking.base import Reranking
from keras_dml.evaluation.reranking.k_reciprocal import (
    KReciprocal,
    k_reciprocal,
)
from keras_dml.evaluation.reranking.query_expansion import (
    AlphaQueryExpansion,
    expand_queries,
)
from keras_dml.evaluation.result import RetrievalResult
from keras_dml.evaluation.retrieval import (
    evaluate_lists,
    evaluate_retrieval,
    retrieval_metrics,
)
from keras_dml.evaluation.statistics.bootstrap import (
    Difference,
    Interval,
    bootstrap_intervals,
    paired_bootstrap,
)
from keras_dml.evaluation.statistics.health import (
    collapse_warning,
    effective_dim,
    embedding_health,
    embedding_spectrum,
    mean_similarities,
    participation_ratio,
    proxy_occupancy,
)
from keras_dml.evaluation.statistics.per_class import ClassTable, class_table
from keras_dml.evaluation.views import ViewIndex, merge_views
