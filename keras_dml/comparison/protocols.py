"""Protocols and budgets, and how they change the run of a recipe."""

import dataclasses
from typing import Any, ClassVar

from keras_dml.config import RunConfig, StageConfig
from keras_dml.config.plan_sections import BudgetConfig, ProtocolConfig


@dataclasses.dataclass(frozen=True)
class Protocol:
    """How classes are split, and what chooses the epoch that is measured.

    Args:
        section: The `protocol` section of a plan.

    Attributes:
        holds_out: Whether held-out training classes choose the epoch.
    """

    section: ProtocolConfig
    holds_out: ClassVar[bool] = False

    @property
    def folds(self) -> list[int | None]:
        """The folds that are trained; `[None]` without cross-validation."""
        return [None]

    @property
    def concatenates(self) -> bool:
        """Whether the concatenated embeddings of all folds are measured."""
        return False

    @property
    def in_words(self) -> str:
        """A sentence that says what chooses the measured epoch."""
        raise NotImplementedError

    def data(self, fold: int | None) -> dict[str, Any]:
        """Returns the changes to the `data` section of a run."""
        raise NotImplementedError

    def applied(self, config: RunConfig, fold: int | None = None) -> RunConfig:
        """Returns the run of a recipe under the protocol.

        Only the first stage of the recipe is trained, on the training classes
        that do not validate. In a recipe with two stages, the first is the
        one whose schedule depends on the validation.

        Args:
            config: The run as the recipe defines it.
            fold: Number of the fold. Defaults to `None`.
        """
        stage = _stage(config.stages[0], "main", "fit", None)
        data = config.data.model_copy(update=self.data(fold))
        return config.model_copy(update={"data": data, "stages": [stage]})


class AsRecipe(Protocol):
    """Leaves everything to each recipe."""

    in_words = "as each recipe says"

    def applied(self, config: RunConfig, fold: int | None = None) -> RunConfig:
        return config


class Oracle(Protocol):
    """Chooses the epoch on the test classes, as most papers do."""

    in_words = "oracle: the test classes themselves choose the epoch"

    def data(self, fold: int | None) -> dict[str, Any]:
        return {"validation": "test"}


class FixedValidation(Protocol):
    """Holds out a fraction of the training classes."""

    holds_out = True

    @property
    def in_words(self) -> str:
        return (
            f"fixed validation: {self.section.fraction * 100:g} % of the "
            "training classes choose the epoch"
        )

    def data(self, fold: int | None) -> dict[str, Any]:
        fraction = self.section.fraction
        return {"validation": "classes", "validation_fraction": fraction}


class CrossValidation(Protocol):
    """Trains once for each fold of the training classes."""

    holds_out = True

    @property
    def folds(self) -> list[int | None]:
        return list(range(self.section.folds))

    @property
    def concatenates(self) -> bool:
        return self.section.concatenated

    @property
    def in_words(self) -> str:
        section = self.section
        sides = (
            " Rows with all folds' dimensions measure the concatenated "
            "embeddings of all folds, the others each fold separately."
            if section.concatenated
            else ""
        )
        return (
            f"{section.folds}-fold cross-validation over the training "
            f"classes, {section.split} folds: the classes of a fold choose "
            f"its epoch.{sides}"
        )

    def data(self, fold: int | None) -> dict[str, Any]:
        return {
            "validation": "classes",
            "folds": self.section.folds,
            "fold": fold,
            "fold_split": self.section.split,
        }


class TwoStage(Protocol):
    """Finds the schedule on half of the classes, then trains on all."""

    in_words = (
        "two stages: one half of the training classes finds the schedule on "
        "the other, then all of them train"
    )

    def applied(self, config: RunConfig, fold: int | None = None) -> RunConfig:
        if any(stage.replay is not None for stage in config.stages):
            return config
        first = config.stages[0]
        stages = [
            _stage(first, "search", "first_half", first.replay),
            _stage(first, "final", "all", "search"),
        ]
        return config.model_copy(update={"stages": stages})


_PROTOCOLS: dict[str, type[Protocol]] = {
    "recipe": AsRecipe,
    "oracle": Oracle,
    "fixed_validation": FixedValidation,
    "cross_validation": CrossValidation,
    "two_stage": TwoStage,
}


def get_protocol(section: ProtocolConfig) -> Protocol:
    """Makes the protocol of a section.

    Example:

    >>> oracle = get_protocol(ProtocolConfig(kind="oracle"))
    >>> oracle.applied(resolve("hbn", "digits")).data.validation
    'test'
    """
    return _PROTOCOLS[section.kind](section)


def tuning_protocol(section: ProtocolConfig) -> Protocol:
    """Makes the protocol that judges trials: never on the test classes."""
    protocol = get_protocol(section)
    return protocol if protocol.holds_out else FixedValidation(ProtocolConfig())


def _stage(
    stage: StageConfig, name: str, classes: str, replay: str | None
) -> StageConfig:
    changes = {"name": name, "classes": classes, "replay": replay}
    return stage.model_copy(update=changes)


def within_budget(config: RunConfig, budget: BudgetConfig) -> RunConfig:
    """Returns the run with another length.

    Each phase keeps its share of the epochs, and has at least one. A warm-up
    keeps its share of the steps, but never grows.

    Args:
        config: The run.
        budget: Epochs of every stage, and steps of an epoch.
    """
    steps = config.sampling.steps_per_epoch
    if budget.steps_per_epoch is not None:
        config = config.model_copy(
            update={
                "sampling": config.sampling.model_copy(
                    update={"steps_per_epoch": budget.steps_per_epoch}
                )
            }
        )
    before = _epochs(config.stages[0])
    if budget.epochs is not None:
        config = config.model_copy(
            update={
                "stages": [_of_epochs(s, budget.epochs) for s in config.stages],
            }
        )
    if steps is None:
        return config
    now = config.sampling.steps_per_epoch or steps
    share = _epochs(config.stages[0]) * now / (before * steps)
    return config.model_copy(update={"optimizer": _warm_up(config, share)})


def budget_in_words(budget: BudgetConfig) -> str:
    """Says how long every run trains; empty if each recipe decides."""
    parts = []
    if budget.epochs is not None:
        parts.append(f"{budget.epochs} epochs")
    if budget.steps_per_epoch is not None:
        parts.append(f"{budget.steps_per_epoch} steps an epoch")
    return ", ".join(parts) + " for every run" if parts else ""


def _epochs(stage: StageConfig) -> int:
    return sum(phase.epochs for phase in stage.phases)


def _of_epochs(stage: StageConfig, epochs: int) -> StageConfig:
    """Scales the phases of a stage; the longest takes the rounding error."""
    total = _epochs(stage)
    lengths = [
        max(1, round(phase.epochs * epochs / total)) for phase in stage.phases
    ]
    longest = max(range(len(lengths)), key=lambda i: stage.phases[i].epochs)
    lengths[longest] = max(1, lengths[longest] + epochs - sum(lengths))
    phases = []
    for phase, length in zip(stage.phases, lengths, strict=True):
        changes: dict[str, object] = {"epochs": length}
        if phase.heat is not None and phase.heat.epoch:
            epoch = min(
                round(phase.heat.epoch * length / phase.epochs), length - 1
            )
            changes["heat"] = phase.heat.model_copy(update={"epoch": epoch})
        elif phase.heat is not None and phase.heat.every:
            every = max(1, round(phase.heat.every * length / phase.epochs))
            changes["heat"] = phase.heat.model_copy(update={"every": every})
        phases.append(phase.model_copy(update=changes))
    return stage.model_copy(update={"phases": phases})


def _warm_up(config: RunConfig, share: float):
    changes = {}
    for name in type(config.optimizer).model_fields:
        group = getattr(config.optimizer, name)
        steps = round(group.warmup_steps * min(share, 1))
        changes[name] = group.model_copy(update={"warmup_steps": steps})
    return config.optimizer.model_copy(update=changes)
