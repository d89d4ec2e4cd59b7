"""The sections of a run's configuration, validated strictly.

`keras-dml config` shows every key with its value and its origin. An unknown key
is an error; so is a value of another type or outside its range.
"""

from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    model_validator,
)

from keras_dml.config.data_sections import (
    AugmentationConfig,
    DataConfig,
    SamplingConfig,
)
from keras_dml.config.training_sections import OptimizerConfig, StageConfig
from keras_dml.config.values import (
    Count,
    Dim,
    Few,
    Minutes,
    Monitor,
    NotNegative,
    Number,
    Positive,
    Scheduled,
    Section,
    Seed,
    Share,
    Steps,
    check_own_names,
)


class ProxiesConfig(Section):
    """The learned class representatives and their similarity.

    `sample` is the share of the classes that a step compares with; `null`
    compares with all classes and draws no sample. `sample_at_least` is
    derived from `sampling`: the sample always holds the classes of a batch.
    """

    metric: Literal["cosine", "dot", "neg_squared_euclidean"] = "cosine"
    centers: Few = 1
    unit: bool = True
    initializer: Literal[
        "he_fan_out",
        "normal",
        "normal_eighth",
        "normal_hundredth",
        "scaled_fan_in",
        "uniform_fan_in",
    ] = "he_fan_out"
    class_means: bool = False
    regularizer: Literal[
        "none",
        "center_distance",
        "center_invariance",
        "lp_norm",
        "proxy_repulsion",
        "regular_face",
        "zero_mean",
    ] = "none"
    regularizer_arguments: dict[str, Any] = {}
    sample_aware: Annotated[
        dict[str, Any], Scheduled("epochs", ("memory_epoch", "filter_epoch"))
    ] = {}
    sample: Share | None = None
    sample_at_least: Count | None = None


class ModelConfig(Section):
    """The network, from the image to the similarities with the proxies.

    With `whitening`, the head starts as a whitening of the features within
    classes; these are the shrinkages that validation classes choose from.
    Otherwise it starts from random numbers. `matryoshka` lists the sizes of
    prefixes of the embedding that shall work alone, and its weights are those
    of their losses, by default all 1; the whole embedding counts as well.
    """

    backbone: str = "small_cnn"
    weights: str = "auto"
    pooling: Literal[
        "average",
        "max",
        "k_max",
        "average_plus_max",
        "generalized_mean",
        "class_token",
        "none",
    ] = "max"
    k: Count = 1
    layer_norm: bool = True
    dim: Dim = 128
    matryoshka: Annotated[list[Dim], Field(max_length=20)] = []
    matryoshka_weights: Annotated[list[Positive], Field(max_length=21)] = []
    use_bias: bool = True
    kernel_initializer: Literal[
        "uniform_fan_in", "he_fan_out", "glorot_uniform", "scaled_fan_in"
    ] = "uniform_fan_in"
    normalization: Literal["none", "l2", "batch_norm"] = "none"
    batch_norm: Literal["train", "frozen_statistics", "frozen"] = "train"
    whitening: Annotated[list[Share], Field(max_length=100)] = []
    proxies: ProxiesConfig = ProxiesConfig()
    scale: Positive = 16.0
    logits_bias: bool = False
    boundary: Positive = 1.2
    policy: Literal["float32", "mixed_float16", "mixed_bfloat16"] = "float32"

    @property
    def prefixes(self) -> list[int]:
        """The sizes of the prefixes that are smaller than the embedding."""
        return [size for size in self.matryoshka if size < self.dim]

    @model_validator(mode="after")
    def _prefixes_of_the_embedding(self):
        sizes, weights = self.matryoshka, self.matryoshka_weights
        if sizes != sorted({*sizes}) or max(sizes, default=0) > self.dim:
            raise ValueError(
                "`matryoshka` must list sizes that increase, up to `dim` at "
                f"most. Received: {sizes} and dim={self.dim}."
            )
        wanted = len(self.prefixes) + 1
        if weights and len(weights) != (wanted if sizes else 0):
            raise ValueError(
                "`matryoshka_weights` must hold a number for each prefix, and "
                f"one for the whole embedding. Received: {len(weights)} "
                f"numbers for matryoshka={sizes} and dim={self.dim}."
            )
        return self


class MemoryConfig(Section):
    """Embeddings of past batches that each new batch is also compared with."""

    size: Annotated[int, Field(ge=1, le=10**9)]
    weight: Positive = 1.0
    warm_up_steps: Annotated[Steps, Scheduled("steps")] = 1000


class MomentsConfig(Section):
    """Embeddings of the moments of local features, on which the loss is too."""

    orders: Annotated[int, Field(ge=2, le=20)] = 5
    projections: Dim = 8192
    train_projections: bool = False


class LossConfig(Section):
    """One term of the training loss.

    `takes` is for a loss of another package, given by its path. `sampled`
    is derived from `model.proxies.sample`. With `group_weight` the term counts
    once more on the groups of the classes, so much.
    """

    name: str
    weight: Number = 1.0
    arguments: dict[str, Any] = {}
    takes: str | None = None
    memory: MemoryConfig | None = None
    moments: MomentsConfig | None = None
    group_weight: NotNegative | None = None
    sampled: bool = False


class DistillationConfig(Section):
    """The loss on a teacher's embeddings of the training images.

    `teacher` is a run folder, or embeddings with the ids of the images. The
    loss on labels counts with `label_weight`, by default not at all. `weight:
    null` is that of the loss's paper.
    """

    teacher: str
    loss: Literal[
        "relational", "relaxed_contrastive", "similarity_preserving"
    ] = "relaxed_contrastive"
    weight: Positive | None = None
    label_weight: NotNegative = 0.0
    arguments: dict[str, Any] = {}


class EvaluationConfig(Section):
    """What is measured, and what chooses the weights that are kept.

    `interpolate` lists shares: after training, validation classes choose how
    far the weights go from those at the start, 0, to the trained ones, 1.
    `every` is the number of epochs from one validation to the next; the last
    epoch of a phase validates too, unless `interpolate` does. `null` validates
    four to eight times in a stage, or two to four times where `select: last`
    keeps the last epoch whatever they say.
    """

    k: Annotated[list[Count], Field(min_length=1, max_length=100)] = [
        1,
        2,
        4,
        8,
    ]
    normalize: bool = True
    clustering: bool = False
    kmeans_starts: Few = 1
    kmeans_init: Literal["random", "k-means++"] = "random"
    monitor: Monitor = "map@r"
    select: Literal["best", "last"] = "best"
    interpolate: Annotated[
        list[Annotated[float, Field(ge=0, le=1)]], Field(max_length=100)
    ] = []
    every: Count | None = 1
    batch_size: Count = 128


# The name of the stage that trains once more.
REFIT = "refit"


class RunConfig(Section):
    """Everything that defines one run; saved as `config.yaml` to repeat it.

    With `refit`, a stage whose validation classes have chosen how far the
    weights go is trained once more, from the same start and as far, with these
    classes among those that train; a run for which `minutes` were too few holds
    `null`. With `final: all`, a training on all classes
    follows the measured one.
    """

    recipe: str = "custom"
    section: str = "default"
    seed: Seed = 0
    strategy: Literal["auto", "none", "mirrored", "multi_worker"] = "auto"
    devices: str | None = None
    minutes: Minutes | None = None
    passes: Count | None = 40
    refit: bool | None = False
    final: Literal["measured", "all"] = "measured"
    data: DataConfig = DataConfig()
    sampling: SamplingConfig = SamplingConfig()
    augmentation: AugmentationConfig = AugmentationConfig()
    model: ModelConfig = ModelConfig()
    loss: Annotated[list[LossConfig], Field(min_length=1, max_length=20)]
    distillation: DistillationConfig | None = None
    optimizer: OptimizerConfig = OptimizerConfig()
    stages: Annotated[list[StageConfig], Field(min_length=1, max_length=100)]
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _sampled_with_a_sample(self):
        sampled = [place for place, one in enumerate(self.loss) if one.sampled]
        if sampled and self.model.proxies.sample is None:
            raise ValueError(
                f"`loss.{sampled[0]}.sampled` needs `model.proxies.sample`, "
                "the share of the classes that a step compares with. "
                "Received: null. Set that share, or leave `sampled` out."
            )
        return self

    @model_validator(mode="after")
    def _stages_have_names(self):
        check_own_names("stages", (stage.name for stage in self.trainings))
        return self

    @property
    def trainings(self) -> list[StageConfig]:
        """The stages, and the one that `refit` adds."""
        last = self.stages[-1]
        validates = self.data.validation == "classes" and last.classes == "fit"
        if not (self.refit and validates and self.evaluation.interpolate):
            return self.stages
        phases = [
            phase.changed(plateau=None, stop_patience=None, stop_tail=0)
            for phase in last.phases
        ]
        again = {"name": REFIT, "classes": "all", "phases": phases}
        return [*self.stages, last.changed(**again)]

    def __repr__(self) -> str:
        losses = " + ".join(term.name for term in self.loss)
        return (
            f"RunConfig(recipe={self.recipe!r}, source={self.data.source!r}, "
            f"backbone={self.model.backbone!r}, loss={losses!r}, "
            f"seed={self.seed})"
        )

    __str__ = __repr__
