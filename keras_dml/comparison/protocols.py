"""How a recipe is trained under a protocol and a budget."""

from keras_dml.config import RunConfig, StageConfig
from keras_dml.config.plan_sections import BudgetConfig, ProtocolConfig


def fold_numbers(protocol: ProtocolConfig) -> list[int | None]:
    """The folds that are trained; `[None]` without cross-validation."""
    if protocol.kind == "cross_validation":
        return list(range(protocol.folds))
    return [None]


def under_protocol(
    config: RunConfig, protocol: ProtocolConfig, fold: int | None = None
) -> RunConfig:
    """The run of one recipe under a protocol.

    But for `recipe` and `two_stage`, the first stage of the recipe is
    trained, on the training classes that do not validate: of a recipe in two
    stages it is the one that follows the validation.

    Args:
        config: The recipe's own run.
        protocol: The protocol.
        fold: Number of the fold in cross-validation. Defaults to `None`.

    Example:

    >>> oracle = ProtocolConfig(kind="oracle")
    >>> under_protocol(resolve("hbn", "digits"), oracle).data.validation
    'test'
    """
    if protocol.kind == "recipe":
        return config
    if protocol.kind == "two_stage":
        return config.model_copy(update={"stages": _two_stages(config)})
    stage = config.stages[0].model_copy(
        update={"name": "main", "classes": "fit", "replay": None}
    )
    changes: dict[str, object] = {"validation": "classes"}
    if protocol.kind == "oracle":
        changes = {"validation": "test"}
    elif protocol.kind == "fixed_validation":
        changes["validation_fraction"] = protocol.fraction
    else:
        changes |= {
            "folds": protocol.folds,
            "fold": fold,
            "fold_split": protocol.split,
        }
    return config.model_copy(
        update={
            "data": config.data.model_copy(update=changes),
            "stages": [stage],
        }
    )


def within_budget(config: RunConfig, budget: BudgetConfig) -> RunConfig:
    """The run with another length; each phase keeps its share, at least one.

    A warm-up keeps its share of the steps too.

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


def protocol_in_words(protocol: ProtocolConfig) -> str:
    """What chose the epoch that was measured, as a sentence.

    Example:

    >>> protocol_in_words(ProtocolConfig(fraction=0.2))
    'fixed validation: 20 % of the training classes choose the epoch'
    """
    if protocol.kind == "cross_validation":
        sides = (
            " Rows with all folds' dimensions measure their embeddings side "
            "by side (concatenated), the others each fold on its own "
            "(separated)."
            if protocol.concatenated
            else ""
        )
        return (
            f"{protocol.folds}-fold cross-validation over the training "
            f"classes, {protocol.split} folds: the classes of a fold choose "
            f"its epoch.{sides}"
        )
    return {
        "recipe": "as each recipe says",
        "oracle": "oracle: the test classes themselves choose the epoch",
        "fixed_validation": (
            f"fixed validation: {protocol.fraction * 100:g} % of the training "
            "classes choose the epoch"
        ),
        "two_stage": (
            "two stages: one half of the training classes finds the schedule "
            "on the other, then all of them train"
        ),
    }[protocol.kind]


def budget_in_words(budget: BudgetConfig) -> str:
    """How long every run trains; empty where each recipe says it."""
    parts = []
    if budget.epochs is not None:
        parts.append(f"{budget.epochs} epochs")
    if budget.steps_per_epoch is not None:
        parts.append(f"{budget.steps_per_epoch} steps an epoch")
    return ", ".join(parts) + " for every run" if parts else ""


def _two_stages(config: RunConfig) -> list[StageConfig]:
    if any(stage.replay is not None for stage in config.stages):
        return config.stages
    stage = config.stages[0]
    return [
        stage.model_copy(update={"name": "search", "classes": "first_half"}),
        stage.model_copy(
            update={"name": "final", "classes": "all", "replay": "search"}
        ),
    ]


def _epochs(stage: StageConfig) -> int:
    return sum(phase.epochs for phase in stage.phases)


def _of_epochs(stage: StageConfig, epochs: int) -> StageConfig:
    """The stage with phases of the same shares; the longest takes the rest."""
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
    groups = {
        name: getattr(config.optimizer, name)
        for name in ("backbone", "head", "proxies")
    }
    return config.optimizer.model_copy(
        update={
            name: group.model_copy(
                update={
                    "warmup_steps": round(group.warmup_steps * min(share, 1))
                }
            )
            for name, group in groups.items()
        }
    )
