"""Plans how long a run trains, from its images and the minutes it may take."""

import math

from keras_dml.config import PhaseConfig, RunConfig, StageConfig
from keras_dml.console import logger
from keras_dml.data.made_classes import upright
from keras_dml.errors import UsageError
from keras_dml.run.batches import make_sampler
from keras_dml.run.data import RunData, StageData
from keras_dml.run.models import trains_on_features
from keras_dml.run.pace import TrainingPace
from keras_dml.wording import counted, roughly

# How often a planned training validates.
FEWEST_VALIDATIONS, MOST_VALIDATIONS = 4, 8
# An estimate of export and report on two cores; all else is measured in the
# run. `benchmarks/fixed_cost.py` prints what they take.
EXPORT_SECONDS = 40.0
# How often a run embeds its validation images for the page, and its test images
# after training. The interpolation embeds the former once for each share.
PAGE_PASSES = 1
TEST_PASSES = 1


def is_open(config: RunConfig, index: int) -> bool:
    """Whether a stage has a length, or a number of validations, to settle."""
    return config.evaluation.every is None or has_open_phase(
        config.stages[index]
    )


def has_open_phase(stage: StageConfig) -> bool:
    """Whether a stage has a phase whose length is not settled."""
    return any(phase.epochs is None for phase in stage.phases)


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

    The run sees every image at most `passes` times, if that is a number. With
    a pace it also ends within `minutes`, measurements, export and report
    included, if one epoch of each phase does; several open stages divide the
    minutes. A refit with which it would not is left out. Without a pace, phases
    of settled length say how long the others are. If the number of epochs
    between validations is open too, there are four to eight.

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
    most = settled
    if has_open_phase(config.stages[index]):
        steps = len(make_sampler(data.fit, config)(0))
        batch = config.sampling.batch_size
        bounds = []
        if config.passes is not None:
            bounds.append(config.passes * len(data.fit) / batch / steps)
        if config.minutes is not None and pace is not None:
            used = seconds_used + TEST_PASSES * pace.image * test_images
            within, needed = _epochs_within(
                config, index, data, pace, again + refit, used
            )
            if within < least and refit:
                config = config.changed(refit=False)
                logger.warning(
                    "%g minutes are too few on this machine to train once "
                    "more on what validates: the refit is left out.",
                    config.minutes,
                )
                within, needed = _epochs_within(
                    config, index, data, pace, again, used
                )
            if within < least:
                logger.warning(
                    "%g minutes are too few on this machine: %d %s trained, "
                    "and the command takes about %d minutes. Give it more "
                    "`minutes` or choose a smaller network.",
                    config.minutes,
                    least,
                    "epoch is" if least == 1 else "epochs are",
                    math.ceil(needed / 60),
                )
            bounds.append(within)
        elif settled:
            bounds = [settled + _epochs_of_open_phases(phases)]
        if not bounds:
            raise UsageError(
                "Nothing says how long to train: `epochs`, `minutes` and "
                "`passes` are null. Set one of them."
            )
        most = max(least, round(min(bounds)))
    every = config.evaluation.every or _epochs_between_validations(most)
    stages = list(config.stages)
    # The end of a phase needs no validation where none chooses the epoch.
    chooses = config.evaluation.select == "best"
    waits = sum(phase.epochs is None for phase in phases)
    unit = every if chooses or waits > 1 else 1
    divided = _divided(phases, most - settled, unit)
    stages[index] = stages[index].changed(phases=divided)
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
    if len(config.trainings) > len(config.stages):
        steps = config.sampling.steps_per_epoch
        refit = 1.0 if steps else len(run.train) / images
    if config.final == "all":
        again = (len(run.train) + len(run.test)) / images
    return {"refit": refit, "again": again}


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
    steps = epochs * len(make_sampler(data.fit, config)(0))
    batch = config.sampling.batch_size
    lasts = f", about {roughly(steps * pace.step)}" if pace else ""
    refits = len(config.trainings) > len(config.stages) and data.validation
    seen = steps * batch / len(data.fit)
    again = ", then as many in any refit" if refits else ""
    images = counted(batch, "image")
    epoch = counted(steps // epochs, "step")
    return (
        f"{counted(steps, 'step')}, each learning from {images}, in "
        f"{counted(epochs, 'epoch')} of {epoch}{lasts}{again}; "
        f"each training image is seen {seen:,.1f} times"
    )


def _epochs_between_validations(epochs: int) -> int:
    """Returns a number after which the last epoch is validated, or nearly."""
    fewest = math.ceil(epochs / MOST_VALIDATIONS)
    most = math.ceil(epochs / FEWEST_VALIDATIONS)
    return min(range(most, fewest - 1, -1), key=lambda every: epochs % every)


def _epochs_of_open_phases(phases: list[PhaseConfig]) -> int:
    """Returns the epochs that settled phases give the others by their share."""
    settled = [phase for phase in phases if phase.epochs is not None]
    epochs = sum(phase.epochs or 0 for phase in settled)
    share = sum(phase.share for phase in settled)
    others = sum(phase.share for phase in phases) - share
    return max(1, round(epochs * others / share))


def _epochs_within(
    config: RunConfig,
    index: int,
    data: StageData,
    pace: TrainingPace,
    again: float,
    seconds_elsewhere: float,
) -> tuple[int, float]:
    """Returns the most epochs of a stage that end within the minutes.

    And the seconds that the command takes with the fewest epochs.
    """
    assert config.minutes is not None
    validated = pace.image * (len(data.validation) if data.validation else 0)
    if trains_on_features(config):
        validated = 0.0
    # The start, 0, is known from its features.
    shares = {*config.evaluation.interpolate} - {0.0}
    before = seconds_elsewhere + (len(shares) + PAGE_PASSES) * validated
    before += pace.tracing * (1 + (again > 0)) + EXPORT_SECONDS
    epoch = len(make_sampler(data.fit, config)(0)) * pace.step * (1 + again)
    least = sum(phase.epochs or 1 for phase in config.stages[index].phases)
    waiting = sum(map(has_open_phase, config.stages[index:]))
    left = (60 * config.minutes - before) / waiting
    every = config.evaluation.every
    if every:
        within = int(left / (epoch + validated / every))
        validations = least / every
    else:
        # A short training validates after each epoch.
        short = min(MOST_VALIDATIONS, left / (epoch + validated))
        long = (left - MOST_VALIDATIONS * validated) / epoch
        within = int(max(short, long))
        validations = min(MOST_VALIDATIONS, least)
    needed = before + waiting * (least * epoch + validations * validated)
    return within, needed


def _divided(
    phases: list[PhaseConfig], epochs: int, unit: int
) -> list[PhaseConfig]:
    """Divides epochs among the open phases; the first takes the rest.

    If there are enough, each phase has a multiple of `unit`.
    """
    open_phases = [phase for phase in phases if phase.epochs is None]
    if not open_phases:
        return phases
    unit = unit if epochs // unit >= len(open_phases) else 1
    units = epochs // unit
    whole = sum(phase.share for phase in open_phases)
    lengths = [max(1, int(units * one.share / whole)) for one in open_phases]
    lengths[0] = max(1, lengths[0] + units - sum(lengths))
    remaining = iter(lengths)
    return [
        phase.changed(epochs=next(remaining) * unit)
        if phase.epochs is None
        else phase
        for phase in phases
    ]
