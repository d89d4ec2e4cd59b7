"""The sections that say how a run is trained: optimizers, stages and phases."""

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from keras_dml.config.values import (
    Count,
    Fraction,
    NotNegative,
    Number,
    Positive,
    Scheduled,
    Section,
    Share,
    Steps,
    Whole,
    check_own_names,
)


class GroupConfig(Section):
    """The optimizer of one group of variables."""

    name: Literal[
        "adam", "torch_adam", "row_lazy_adam", "adamw", "muon", "sgd", "rmsprop"
    ] = "adam"
    # `None`: by the steps of the phase, see `run.compiling.fine_tuning_rate`.
    lr: NotNegative | None = 1e-3
    schedule: Literal["constant", "cosine", "step"] = "constant"
    warmup_steps: Annotated[Steps, Scheduled("steps")] = 0
    step_epochs: Annotated[Count | None, Scheduled("epochs")] = None
    step_factor: Positive = 0.1
    clip_value: Positive | None = None
    # `None`: the optimizer's own.
    weight_decay: NotNegative | None = None
    layer_decay: Share = 1.0
    arguments: dict[str, bool | Whole | Number | None] = {}

    @model_validator(mode="after")
    def _step_has_a_length_and_no_warm_up(self):
        if self.schedule == "step" and self.step_epochs is None:
            raise ValueError(
                "`schedule: step` needs `step_epochs`, the number of epochs "
                "between two drops."
            )
        if self.schedule == "step" and self.warmup_steps:
            raise ValueError(
                "`warmup_steps` must be 0 with `schedule: step`, which begins "
                "at its highest rate."
            )
        return self


class OptimizerConfig(Section):
    """One optimizer for each of backbone, head and proxies.

    `resolve` and `validate` fill `head` and `proxies` with the values of
    `backbone` that they do not set, or set to `null`. Their `layer_decay`
    stays 1, because head and proxies are not blocks of a network.
    """

    backbone: GroupConfig = GroupConfig()
    head: GroupConfig = GroupConfig()
    proxies: GroupConfig = GroupConfig()

    @model_validator(mode="after")
    def _layer_decay_of_the_backbone(self):
        if self.head.layer_decay < 1 or self.proxies.layer_decay < 1:
            raise ValueError(
                "`layer_decay` is for `optimizer.backbone` alone: head and "
                "proxies are no blocks of a network."
            )
        return self


class HeatConfig(Section):
    """Changes the temperature in a phase: a lower scale is a higher one.

    At once from `epoch` on, or every so many epochs by `scale_factor`. The
    learning rate is multiplied by `lr_factor`.
    """

    epoch: Annotated[Steps | None, Scheduled("epochs")] = None
    scale: Positive | None = None
    every: Annotated[Count | None, Scheduled("epochs")] = None
    scale_factor: Positive = 1 / 1.41
    lr_factor: Positive = 0.1

    @model_validator(mode="after")
    def _one_form(self):
        given = [self.epoch is not None, self.scale is not None]
        if given != [self.every is None] * 2:
            raise ValueError(
                "`heat` needs either `epoch` and `scale` (heating at once) or "
                "`every` (gradual heating), and no others of these."
            )
        if self.every and math.isclose(self.scale_factor, 1, rel_tol=1e-3):
            raise ValueError(
                "`scale_factor` must differ from 1, or nothing is heated. "
                f"Received: {self.scale_factor:g}"
            )
        return self


class PlateauConfig(Section):
    """Lowers the learning rate when the monitored metric stops rising.

    `patience` counts validations.
    """

    patience: Count = 4
    factor: Fraction = 0.1
    min_delta: NotNegative = 1e-4


class PhaseConfig(Section):
    """Some epochs with one optimizer and one set of trained variables.

    `epochs: null` is settled before training: so many that the command ends
    within `minutes`, and no image is seen more often than `passes` says; with
    `passes: null` the minutes alone decide.
    Several such phases divide them by their `share`. Beside phases with
    `epochs`, and without `minutes`, their `share` of those is their length,
    whatever `passes` says. `stop_patience` ends a
    phase after as many validations without a better metric, and after another
    `stop_tail` epochs in which the rates fall to zero.
    """

    name: str = "train"
    epochs: Count | None = 1
    share: Positive = 1.0
    freeze: Literal["none", "weights", "all"] = "none"
    lr_factor: Positive = 1.0
    refresh_bn: Steps = 0
    heat: HeatConfig | None = None
    plateau: PlateauConfig | None = None
    stop_patience: Count | None = None
    stop_tail: Annotated[Steps, Scheduled("epochs")] = 0

    @model_validator(mode="after")
    def _tail_of_a_stop(self):
        others = (self.plateau, self.heat)
        if self.stop_tail and (self.stop_patience is None or any(others)):
            raise ValueError(
                "`stop_tail` needs `stop_patience`, and rates that neither "
                "`plateau` nor `heat` changes."
            )
        return self


class StageConfig(Section):
    """A training from fresh weights; it may replay an earlier stage."""

    name: str = "main"
    classes: Literal["fit", "first_half", "all"] = "fit"
    replay: str | None = None
    drops_one_epoch_late: bool = False
    phases: Annotated[list[PhaseConfig], Field(min_length=1, max_length=100)]

    @model_validator(mode="after")
    def _phases_have_names(self):
        check_own_names("phases", (phase.name for phase in self.phases))
        return self
