# ruff: noqa: F401
"""Optimizers for metric learning, and tables of the variables they update."""

from keras_dml.optimizers.decay_to_zero import DecayToZero
from keras_dml.optimizers.group_table import OptimizerGroup, group_table
from keras_dml.optimizers.layer_decay import (
    layer_blocks,
    layer_decay,
    layer_decay_rules,
)
from keras_dml.optimizers.learning_rate import (
    LearningRate,
    follows_schedule,
    inner_optimizers,
)
from keras_dml.optimizers.muon import Muon, orthogonalized
from keras_dml.optimizers.per_variable import PerVariable
from keras_dml.optimizers.row_lazy_adam import RowLazyAdam
from keras_dml.optimizers.torch_adam import TorchAdam
