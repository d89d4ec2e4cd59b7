"""Protocols and budgets, and how they change the run of a recipe."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from keras_dml.config import HeatConfig, PhaseConfig, RunConfig, StageConfig
from keras_dml.config.plan_sections import BudgetConfig, ProtocolConfig

# The length that the warm-up of recipes is meant for, if theirs is open.
USUAL_EPOCHS = 20


def first_stage(stages: list[StageConfig]) -> list[StageConfig]:
    """Trains the first stage of a recipe only, on the `fit` classes.

    In a recipe with two stages, the first is the one whose schedule depends
    on the validation.
    """
    return [stages[0].changed(name="main", classes="fit", replay=None)]


@dataclasses.dataclass(frozen=True)
class Protocol:
    """How classes are split, and what chooses the epoch that is measured.

    Args:
        in_words: A sentence that says what chooses the measured epoch.
        data: Dict of changes to the `data` section of a run. Defaults to
            none.
        stages: Function from the stages of a recipe to those that are
            trained. Defaults to `first_stage`.
        folds: The folds that are trained. Defaults to `(None,)`: no
            cross-validation.
        holds_out: Whether held-out training classes choose the epoch.
            Defaults to `False`.
        concatenates: Whether the concatenated embeddings of all folds are
            measured. Defaults to `False`.
    """

    in_words: str
    data: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    stages: Callable[[list[StageConfig]], list[StageConfig]] = first_stage
    folds: tuple[int | None, ...] = (None,)
    holds_out: bool = False
    concatenates: bool = False

    def applied(self, config: RunConfig, fold: int | None = None) -> RunConfig:
        """Returns the run of a recipe under the protocol.

        Args:
            config: The run as the recipe defines it.
            fold: Number of the fold. Defaults to `None`.
        """
        data = dict(self.data) if fold is None else {**self.data, "fold": fold}
        return config.changed(data=data, stages=self.stages(config.stages))


def get_protocol(section: ProtocolConfig) -> Protocol:
    """Makes the protocol of a section.

    Example:

    >>> oracle = get_protocol(ProtocolConfig(kind="oracle"))
    >>> oracle.applied(resolve("hbn", "digits")).data.validation
    'test'
    """
    match section.kind:
        case "recipe":
            return Protocol("as each recipe says", stages=list)
        case "oracle":
            return Protocol(
                "oracle: the test classes themselves choose the epoch",
                {"validation": "test"},
            )
        case "two_stage":
            return Protocol(
                "two stages: one half of the training classes finds the "
                "schedule on the other, then all of them train",
                stages=_two_stages,
            )
        case "fixed_validation":
            fraction = section.fraction
            return Protocol(
                f"fixed validation: {fraction * 100:g} % of the training "
                "classes choose the epoch",
                {"validation": "classes", "validation_fraction": fraction},
                holds_out=True,
            )
    return _cross_validation(section)


def tuning_protocol(section: ProtocolConfig) -> ProtocolConfig:
    """Returns the protocol that judges trials: never on the test classes."""
    return section if get_protocol(section).holds_out else ProtocolConfig()


def _cross_validation(section: ProtocolConfig) -> Protocol:
    sides = (
        " Rows with all folds' dimensions measure the concatenated "
        "embeddings of all folds, the others each fold separately."
    )
    return Protocol(
        f"{section.folds}-fold cross-validation over the training classes, "
        f"{section.split} folds: the classes of a fold choose its epoch."
        f"{sides if section.concatenated else ''}",
        {
            "validation": "classes",
            "folds": section.folds,
            "fold_split": section.split,
        },
        folds=tuple(range(section.folds)),
        holds_out=True,
        concatenates=section.concatenated,
    )


def _two_stages(stages: list[StageConfig]) -> list[StageConfig]:
    """Finds the schedule on half of the classes, then trains on all."""
    if any(stage.replay is not None for stage in stages):
        return stages
    return [
        stages[0].changed(name="search", classes="first_half"),
        stages[0].changed(name="final", classes="all", replay="search"),
    ]


def within_budget(config: RunConfig, budget: BudgetConfig) -> RunConfig:
    """Returns the run with another length.

    Each phase keeps its share of the epochs, and has at least one. A warm-up
    keeps its share of the steps, but never grows.

    Args:
        config: The run.
        budget: Epochs of every stage, and steps of an epoch.
    """
    # Runs that share a machine would measure each other's pace.
    config = config.changed(minutes=None)
    steps = config.sampling.steps_per_epoch
    before = _epochs(config.stages[0])
    if budget.steps_per_epoch is not None:
        config = config.changed(
            sampling={"steps_per_epoch": budget.steps_per_epoch}
        )
    if budget.epochs is not None:
        stages = [_of_epochs(stage, budget.epochs) for stage in config.stages]
        config = config.changed(stages=stages)
    if steps is None:
        return config
    now = config.sampling.steps_per_epoch or steps
    share = min(_epochs(config.stages[0]) * now / (before * steps), 1)
    warm_up = {
        name: {"warmup_steps": round(group.warmup_steps * share)}
        for name, group in config.optimizer
    }
    return config.changed(optimizer=warm_up)


def budget_in_words(budget: BudgetConfig) -> str:
    """Says how long every run trains; empty if each recipe decides."""
    parts = []
    if budget.epochs is not None:
        parts.append(f"{budget.epochs} epochs")
    if budget.steps_per_epoch is not None:
        parts.append(f"{budget.steps_per_epoch} steps an epoch")
    return ", ".join(parts) + " for every run" if parts else ""


def _epochs(stage: StageConfig) -> int:
    return sum(phase.epochs or USUAL_EPOCHS for phase in stage.phases)


def _of_epochs(stage: StageConfig, epochs: int) -> StageConfig:
    """Scales the phases of a stage; the longest takes the rounding error."""
    old = [phase.epochs or phase.share for phase in stage.phases]
    new = [max(1, round(length * epochs / sum(old))) for length in old]
    longest = old.index(max(old))
    new[longest] = max(1, new[longest] + epochs - sum(new))
    return stage.changed(
        phases=[
            phase.changed(epochs=length, heat=_moved(phase, length))
            for phase, length in zip(stage.phases, new, strict=True)
        ]
    )


def _moved(phase: PhaseConfig, epochs: int) -> HeatConfig | None:
    """Returns the heating of a phase when the phase has other epochs."""
    heat = phase.heat
    if heat is not None and heat.epoch:
        epoch = round(heat.epoch * epochs / (phase.epochs or epochs))
        return heat.changed(epoch=min(epoch, epochs - 1))
    if heat is not None and heat.every:
        every = round(heat.every * epochs / (phase.epochs or epochs))
        return heat.changed(every=max(1, every))
    return heat
