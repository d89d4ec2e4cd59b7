"""Plans how long a run trains, from its images and the minutes it may take."""

import math

from keras_dml.config import PhaseConfig, RunConfig
from keras_dml.config.data_sections import LONGEST_EPOCH
from keras_dml.console import logger
from keras_dml.data.made_classes import upright
from keras_dml.errors import UsageError
from keras_dml.run.batches import batch_rows, make_sampler
from keras_dml.run.data import RunData, StageData, stage_data
from keras_dml.run.minutes import (
    VALIDATIONS,
    StageTime,
    has_open_phase,
    stage_time,
)
from keras_dml.run.pace import TrainingPace
from keras_dml.run.refit import may_refit
from keras_dml.run.start import MOST_IMAGES
from keras_dml.wording import counted, roughly

# A run of one open stage has no more: each ends with a line and with all
# weights on disk, and on cached features one of 50 steps takes a tenth of a
# second.
MOST_EPOCHS = 100
# Of a training whose minutes hold no epoch; the rates rise and fall in them.
FEWEST_STEPS = 10


def is_open(config: RunConfig, index: int) -> bool:
    """Whether a stage has a length, or a number of validations, to settle."""
    return config.evaluation.every is None or has_open_phase(
        config.stages[index]
    )


def with_length(
    config: RunConfig,
    index: int,
    data: StageData,
    *,
    pace: TrainingPace | None = None,
    test_images: int = 0,
    again: float = 0.0,
    refit: float = 0.0,
    seconds_used: float = 0.0,
) -> RunConfig:
    """Settles the epochs of the open phases of a stage.

    The run sees every image at most `passes` times, if that is a number and
    one epoch of each phase does not see it more often. With
    a pace it also ends within `minutes`, measurements, export and report
    included, if one epoch of each phase does; several open stages divide the
    minutes. A refit with which it would not is left out. Where a run has one
    stage and all its phases are open, its epochs become longer to fill the
    minutes, and where there would be more than a hundred; shorter, of ten steps
    or more, where not even one would end in time. Without a pace,
    phases of settled length say how long the others are. If the number of
    epochs between validations is open too, there are four to eight, or two to
    four where none chooses the epoch that is kept.

    Args:
        config: The configuration.
        index: Number of the stage.
        data: Images of the stage.
        pace: `TrainingPace`, if `minutes` bounds the run. Defaults to `None`.
        test_images: Number of test images of the run. Defaults to `0`.
        again: Length of the final training, in lengths of this one. Defaults
            to `0.0`, none.
        refit: Length of the refit, likewise. Defaults to `0.0`, none.
        seconds_used: Seconds since the start of the command. Defaults to
            `0.0`.

    Returns:
        The configuration with the lengths of the stage.

    Raises:
        UsageError: If neither `passes` nor `minutes` bound the run.

    Example:

    ```python
    with_length(config, 0, data).stages[0].phases[0].epochs
    ```
    """
    phases = config.stages[index].phases
    settled = sum(phase.epochs or 0 for phase in phases)
    least = sum(phase.epochs or 1 for phase in phases)
    most, time = settled, None
    if has_open_phase(config.stages[index]):
        steps = len(make_sampler(data.fit, config)(0))
        bounds = []
        if config.passes is not None:
            seen = steps * batch_rows(data.fit, config)
            bounds.append(config.passes * len(data.fit) // seen)
        if config.minutes is not None and pace is not None:
            embedded = test_images
            if again:
                # It looks at its images anew, and embeds the test images.
                whole = round(again * len(upright(data.fit)))
                embedded += test_images + min(whole, MOST_IMAGES)
            used = seconds_used + pace.image * embedded
            # A final training keeps copies of its own.
            first = max(1.0, refit) + again
            used += pace.keeping * first * len(upright(data.fit))
            config, time = _with_time(
                config, index, data, pace, refit=refit, again=again, used=used
            )
            bounds.append(int(time.epochs(steps)))
        elif settled:
            bounds = [settled + _epochs_of_open_phases(phases)]
        if not bounds:
            raise UsageError(
                "Nothing says how long to train: `epochs`, `minutes` and "
                "`passes` are null. Set one of them."
            )
        most = max(least, min(bounds))
        own = _open_steps(config) or LONGEST_EPOCH
        if time is not None and most > MOST_EPOCHS and own < LONGEST_EPOCH:
            longer = min(LONGEST_EPOCH, math.ceil(most / MOST_EPOCHS) * steps)
            return with_length(
                config.changed(sampling={"steps_per_epoch": longer}),
                index,
                data,
                pace=pace,
                test_images=test_images,
                again=again,
                refit=refit,
                seconds_used=seconds_used,
            )
    every = _epochs_between_validations(config, most)
    stages = list(config.stages)
    # No validation more than that, where they choose the epoch.
    chooses = config.evaluation.select == "best"
    waits = sum(phase.epochs is None for phase in phases)
    unit = every if chooses or waits > 1 else 1
    divided = _divided(phases, most - settled, unit)
    stages[index] = stages[index].changed(phases=divided)
    if time is not None:
        epochs = sum(phase.epochs or 0 for phase in divided)
        config = _with_longer_epochs(config, epochs, time, data)
    return config.changed(stages=stages, evaluation={"every": every})


def later_trainings(
    config: RunConfig, run: RunData, data: StageData
) -> dict[str, float]:
    """Returns the lengths of later trainings, in those of this one.

    Args:
        config: The configuration.
        run: All images of the run.
        data: Images of this stage.

    Returns:
        Dict of `"refit"` and `"again"`, as `with_length` takes them.
    """
    images, refit, again = len(upright(data.fit)), 0.0, 0.0
    if may_refit(config, stage_data(run, config.stages[-1], config)):
        steps = config.sampling.steps_per_epoch
        refit = 1.0 if steps else len(run.train) / images
    if config.final == "all":
        again = (len(run.train) + len(run.test)) / images
    return {"refit": refit, "again": again}


def planned_steps(config: RunConfig, index: int, data: StageData) -> int:
    """Counts the steps of a stage, whose lengths are settled.

    Args:
        config: The configuration.
        index: Number of the stage.
        data: Its images.
    """
    epochs = sum(phase.epochs or 0 for phase in config.stages[index].phases)
    return epochs * len(make_sampler(data.fit, config)(0))


def describe_length(
    config: RunConfig,
    index: int,
    data: StageData,
    pace: TrainingPace | None = None,
) -> str:
    """Says how long the training of a stage is.

    Args:
        config: The configuration with the lengths of the stage.
        index: Number of the stage.
        data: Its images.
        pace: `TrainingPace`, if it was measured. Defaults to `None`.
    """
    epochs = sum(phase.epochs or 0 for phase in config.stages[index].phases)
    steps = planned_steps(config, index, data)
    batch = batch_rows(data.fit, config)
    lasts = f", about {roughly(steps * pace.step)}" if pace else ""
    refits = index + 1 == len(config.stages) and may_refit(config, data)
    seen = steps * batch / len(data.fit)
    again = ", then as many in any refit" if refits else ""
    images = counted(batch, "image")
    epoch = counted(steps // epochs, "step")
    return (
        f"{counted(steps, 'step')}, each learning from {images}, in "
        f"{counted(epochs, 'epoch')} of {epoch}{lasts}{again}; "
        f"each training image is seen {seen:,.1f} times"
    )


def _with_time(
    config: RunConfig,
    index: int,
    data: StageData,
    pace: TrainingPace,
    *,
    refit: float,
    again: float,
    used: float,
) -> tuple[RunConfig, StageTime]:
    """Returns the time of a stage, and warns of what it is too short for."""
    steps = len(make_sampler(data.fit, config)(0))
    least = sum(phase.epochs or 1 for phase in config.stages[index].phases)
    time = stage_time(config, index, data, pace, (refit, again), used)
    own = _open_steps(config) or 0
    shorter = own > FEWEST_STEPS
    # More classes gained more than more steps: docs/lab/photos.md, "Training
    # once more with the validation classes".
    fewest = max(FEWEST_STEPS, math.ceil(steps / 2)) if shorter else steps
    if refit and time.steps(least) < fewest:
        config = config.changed(refit=None)
        logger.warning(
            "%g minutes are too few on this machine to train once more on "
            "what validates: the refit is left out.",
            config.minutes,
        )
        time = stage_time(config, index, data, pace, (again,), used)
    if shorter and time.steps(least) < steps:
        steps = max(FEWEST_STEPS, time.steps(least))
        config = config.changed(sampling={"steps_per_epoch": steps})
    if time.steps(least) < steps:
        logger.warning(
            "%g minutes are too few on this machine: %s of %s trained, and the "
            "command takes about %d minutes. Give it more `minutes` or choose "
            "a smaller network.",
            config.minutes,
            "1 epoch" if least == 1 else f"{least} epochs",
            f"{counted(steps, 'step')} {'is' if least == 1 else 'are'}",
            math.ceil(time.command(least, steps) / 60),
        )
    return config, time


def _open_steps(config: RunConfig) -> int | None:
    """Returns the steps of an epoch, or `None` if they must stay.

    Epochs that see each image once stay, and those whose number is settled.
    """
    stage, *others = config.stages
    if others or any(phase.epochs is not None for phase in stage.phases):
        return None
    return config.sampling.steps_per_epoch


def _with_longer_epochs(
    config: RunConfig, epochs: int, time: StageTime, data: StageData
) -> RunConfig:
    """Divides what is left of the time among the epochs, as longer ones."""
    steps = _open_steps(config)
    if steps is None:
        return config
    longer = time.steps(epochs)
    if config.passes is not None:
        images = epochs * batch_rows(data.fit, config)
        longer = min(longer, config.passes * len(data.fit) // images)
    longer = min(LONGEST_EPOCH, max(steps, longer))
    return config.changed(sampling={"steps_per_epoch": longer})


def _epochs_between_validations(config: RunConfig, epochs: int) -> int:
    """Returns a number after which the last epoch is validated, or nearly."""
    if config.evaluation.every is not None:
        return config.evaluation.every
    least, most = VALIDATIONS[config.evaluation.select]
    fewest = math.ceil(epochs / most)
    candidates = range(math.ceil(epochs / least), fewest - 1, -1)
    return min(candidates, key=lambda every: epochs % every)


def _epochs_of_open_phases(phases: list[PhaseConfig]) -> int:
    """Returns the epochs that settled phases give the others by their share."""
    settled = [phase for phase in phases if phase.epochs is not None]
    epochs = sum(phase.epochs or 0 for phase in settled)
    share = sum(phase.share for phase in settled)
    others = sum(phase.share for phase in phases) - share
    return max(1, round(epochs * others / share))


def _divided(
    phases: list[PhaseConfig], epochs: int, unit: int
) -> list[PhaseConfig]:
    """Divides epochs among the open phases; the longest takes the rest.

    If there are enough, each phase has a multiple of `unit`.
    """
    open_phases = [phase for phase in phases if phase.epochs is None]
    if not open_phases:
        return phases
    unit = unit if epochs // unit >= len(open_phases) else 1
    units = epochs // unit
    whole = sum(phase.share for phase in open_phases)
    lengths = [max(1, int(units * one.share / whole)) for one in open_phases]
    longest = lengths.index(max(lengths))
    lengths[longest] = max(1, lengths[longest] + units - sum(lengths))
    remaining = iter(lengths)
    return [
        phase.changed(epochs=next(remaining) * unit)
        if phase.epochs is None
        else phase
        for phase in phases
    ]
