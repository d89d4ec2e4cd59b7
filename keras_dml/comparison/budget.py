"""Budgets: runs of recipes with another length."""

from keras_dml.config import RunConfig, StageConfig, validate
from keras_dml.config.explanation import Explanation, differences
from keras_dml.config.merging import Layer, Merged
from keras_dml.config.plan_sections import BudgetConfig
from keras_dml.config.training_sections import PhaseConfig
from keras_dml.config.values import scaled
from keras_dml.data.facts import dataset_facts
from keras_dml.wording import counted

# The length that the schedules of recipes are meant for, if theirs is open. An
# epoch is open if it sees all images, and no facts say how many they are.
USUAL_EPOCHS, USUAL_STEPS = 20, 100


def within_budget(explained: Explanation, budget: BudgetConfig) -> RunConfig:
    """Returns the run with another length.

    Each phase keeps its share of the epochs, and has at least one. What
    begins, or happens again, after some epochs or steps moves with them. What
    a plan sets itself is meant for its budget and stays.

    Args:
        explained: The run, and where each of its values was set.
        budget: Epochs of every stage, and steps of an epoch.
    """
    # Runs that share a machine would measure each other's pace.
    config = explained.config.changed(minutes=None)
    if budget.steps_per_epoch is not None:
        config = config.changed(
            sampling={"steps_per_epoch": budget.steps_per_epoch}
        )
    if budget.epochs is not None:
        stages = [_of_epochs(stage, budget.epochs) for stage in config.stages]
        config = config.changed(stages=stages)
    return _with_what_was_set(explained, config, _moved(explained, config))


def budget_in_words(budget: BudgetConfig) -> str:
    """Says how long every run trains; empty if each recipe decides."""
    parts = []
    if budget.epochs is not None:
        parts.append(counted(budget.epochs, "epoch"))
    if budget.steps_per_epoch is not None:
        parts.append(f"{counted(budget.steps_per_epoch, 'step')} an epoch")
    return ", ".join(parts) + " for every run" if parts else ""


def lengths_of_phases(stage: StageConfig) -> list[float]:
    """Returns the epochs of each phase, before open ones are settled.

    Open phases have their share of the others' epochs, or of the usual ones.
    """
    settled = [phase for phase in stage.phases if phase.epochs is not None]
    epochs = sum(phase.epochs or 0 for phase in settled) or USUAL_EPOCHS
    whole = sum(phase.share for phase in settled or stage.phases)
    return [
        phase.epochs or epochs * phase.share / whole for phase in stage.phases
    ]


def _steps_of_epoch(config: RunConfig) -> float:
    """Returns the steps of an epoch; without a number it sees all images."""
    sampling = config.sampling
    if sampling.steps_per_epoch is not None:
        return sampling.steps_per_epoch
    images = dataset_facts(config.data.source).counts.get("train_images")
    return images / sampling.batch_size if images else USUAL_STEPS


def _of_epochs(stage: StageConfig, epochs: int) -> StageConfig:
    """Scales the phases of a stage; the longest takes the rounding error."""
    old = lengths_of_phases(stage)
    new = [max(1, round(length * epochs / sum(old))) for length in old]
    longest = old.index(max(old))
    new[longest] = max(1, new[longest] + epochs - sum(new))
    return stage.changed(
        phases=[
            phase.changed(epochs=length)
            for phase, length in zip(stage.phases, new, strict=True)
        ]
    )


def _moved(explained: Explanation, config: RunConfig) -> RunConfig:
    """Moves all that is `Scheduled` with the length of its training."""
    before = explained.config
    old, new = (
        sum(lengths_of_phases(one.stages[0])) for one in (before, config)
    )
    epochs = new / old
    steps = epochs * _steps_of_epoch(config) / _steps_of_epoch(before)
    stages = [
        stage.changed(
            phases=[
                _moved_phase(phase, was.epochs)
                for phase, was in zip(stage.phases, its.phases, strict=True)
            ]
        )
        for stage, its in zip(config.stages, before.stages, strict=True)
    ]
    return scaled(config, epochs, steps).changed(stages=stages)


def _moved_phase(phase: PhaseConfig, before: int | None) -> PhaseConfig:
    """Moves all that is `Scheduled` in a phase that had other epochs."""
    now = phase.epochs
    if before is None or now is None or before == now:
        return phase
    phase = scaled(phase, now / before, 1.0)
    heat = phase.heat
    if heat is None or heat.epoch is None:
        return phase
    return phase.changed(heat=heat.changed(epoch=min(heat.epoch, now - 1)))


def _with_what_was_set(
    explained: Explanation, unmoved: RunConfig, moved: RunConfig
) -> RunConfig:
    """Puts back what overrides say of the values that were moved."""
    origins = explained.origins
    kept = {}
    for key, (value, _) in differences(unmoved, moved).items():
        origin = origins.get(key, "")
        if origin == "optimizer.backbone":
            origin = origins.get(f"{origin}.{key.rpartition('.')[2]}", "")
        if origin == "override":
            kept[key] = value
    if not kept:
        return moved
    merged = Merged([Layer("", moved.model_dump(mode="json"))])
    merged.override(kept)
    return validate(merged.values)
