"""Configuration: recipes, data-set facts, and the resolved run."""

from keras_dml.config.recipes import (
    DEFAULT_RECIPE,
    Recipe,
    load_recipe,
    recipe_names,
)
from keras_dml.config.resolve import (
    dump_run_config,
    load_run_config,
    merge,
    resolve,
    validate,
)
from keras_dml.config.sections import (
    AugmentationConfig,
    DataConfig,
    EvaluationConfig,
    GroupConfig,
    HeatConfig,
    LossConfig,
    MemoryConfig,
    ModelConfig,
    OptimizerConfig,
    PhaseConfig,
    PlateauConfig,
    ProxiesConfig,
    RunConfig,
    SamplingConfig,
    StageConfig,
)
from keras_dml.data.facts import (
    DatasetFacts,
    SourceFile,
    dataset_facts,
    known_datasets,
)

__all__ = [
    "DEFAULT_RECIPE",
    "AugmentationConfig",
    "DataConfig",
    "DatasetFacts",
    "EvaluationConfig",
    "GroupConfig",
    "HeatConfig",
    "LossConfig",
    "MemoryConfig",
    "ModelConfig",
    "OptimizerConfig",
    "PhaseConfig",
    "PlateauConfig",
    "ProxiesConfig",
    "Recipe",
    "RunConfig",
    "SamplingConfig",
    "SourceFile",
    "StageConfig",
    "dataset_facts",
    "dump_run_config",
    "known_datasets",
    "load_recipe",
    "load_run_config",
    "merge",
    "recipe_names",
    "resolve",
    "validate",
]
