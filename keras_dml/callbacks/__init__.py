# ruff: noqa: F401
"""Keras callbacks for metric learning."""

from keras_dml.callbacks.batch_check import BatchCheck
from keras_dml.callbacks.count_epochs import CountEpochs
from keras_dml.callbacks.early_stopping import EarlyStopping
from keras_dml.callbacks.embedding_health import EmbeddingHealth
from keras_dml.callbacks.gradual_heat_up import GradualHeatUp
from keras_dml.callbacks.heat_up import HeatUp
from keras_dml.callbacks.learning_rate_drops import LearningRateDrops
from keras_dml.callbacks.reduce_lr_on_plateau import ReduceLROnPlateau
from keras_dml.callbacks.retrieval_evaluation import RetrievalEvaluation
from keras_dml.callbacks.terminate_on_non_finite_loss import (
    TerminateOnNonFiniteLoss,
)
