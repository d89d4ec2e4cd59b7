"""Configuration: recipes, and the resolved run."""

from keras_dml.config.data_sections import (
    AugmentationConfig,
    DataConfig,
    SamplingConfig,
)
from keras_dml.config.explanation import Explanation, Setting, differences
from keras_dml.config.flags import flags_of
from keras_dml.config.recipes import (
    DEFAULT_RECIPE,
    Recipe,
    load_recipe,
    recipe_names,
)
from keras_dml.config.resolve import (
    dump_run_config,
    explain,
    load_any,
    load_run_config,
    resolve,
    validate,
)
from keras_dml.config.sections import (
    DistillationConfig,
    EvaluationConfig,
    LossConfig,
    MemoryConfig,
    ModelConfig,
    MomentsConfig,
    ProxiesConfig,
    RunConfig,
)
from keras_dml.config.training_sections import (
    GroupConfig,
    HeatConfig,
    OptimizerConfig,
    PhaseConfig,
    PlateauConfig,
    StageConfig,
)

__all__ = [
    "DEFAULT_RECIPE",
    "AugmentationConfig",
    "DataConfig",
    "DistillationConfig",
    "EvaluationConfig",
    "Explanation",
    "GroupConfig",
    "HeatConfig",
    "LossConfig",
    "MemoryConfig",
    "MomentsConfig",
    "ModelConfig",
    "OptimizerConfig",
    "PhaseConfig",
    "PlateauConfig",
    "ProxiesConfig",
    "Recipe",
    "RunConfig",
    "SamplingConfig",
    "Setting",
    "StageConfig",
    "differences",
    "dump_run_config",
    "explain",
    "flags_of",
    "load_any",
    "load_recipe",
    "load_run_config",
    "recipe_names",
    "resolve",
    "validate",
]
