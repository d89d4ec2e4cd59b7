# ruff: noqa: F401
"""Retrieval metrics for `compile`, exact over the rows of an epoch."""

from keras_dml.metrics.map_at_r import MAPAtR
from keras_dml.metrics.precision_at_1 import PrecisionAt1
from keras_dml.metrics.r_precision import RPrecision
from keras_dml.metrics.recall_at_k import RecallAtK
from keras_dml.metrics.retrieval_metric import RetrievalMetric
