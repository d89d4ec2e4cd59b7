"""Plans how long a run trains, from its images and the minutes it may take."""

import dataclasses
import math
import time

import keras
import numpy as np

from keras_dml import distribute
from keras_dml.config import PhaseConfig, RunConfig, StageConfig
from keras_dml.console import logger
from keras_dml.data.manifest import Manifest
from keras_dml.distribute.worker_fit import repair_fit
from keras_dml.models import freezing
from keras_dml.run.batches import (
    evaluation_batches,
    make_sampler,
    train_batches,
)
from keras_dml.run.compiling import compile_for
from keras_dml.run.data import StageData
from keras_dml.run.measure import forward_function
from keras_dml.run.models import Models
from keras_dml.wording import counted, roughly

# The first steps trace the graph and fill the pipeline.
UNTIMED_STEPS = 3
TIMED_STEPS = 6
TIMED_IMAGES = 256
# How often a planned training validates.
FEWEST_VALIDATIONS, MOST_VALIDATIONS = 4, 8
# Seconds that the command takes beside what grows with the images: start of
# the process, tracing, export and report, measured on two cores.
FIXED_SECONDS = 60.0
# How often a run embeds its validation images after training, for the
# interpolation and for the page, and its test images.
INTERPOLATION_PASSES = 6
TEST_PASSES = 1


@dataclasses.dataclass(frozen=True)
class TrainingPace:
    """How fast a run trains and embeds on this machine.

    Attributes:
        step: Seconds of a training step.
        image: Seconds to embed an image.
    """

    step: float
    image: float


class StepTimer(keras.callbacks.Callback):
    """Measures the seconds of the steps after the first ones.

    Attributes:
        seconds: Seconds of a step, once the steps are done.
    """

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self._started = 0.0

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == UNTIMED_STEPS:
            self._started = time.perf_counter()
        if batch + 1 == UNTIMED_STEPS + TIMED_STEPS:
            self.seconds = (time.perf_counter() - self._started) / TIMED_STEPS


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
    seconds_used: float = 0.0,
) -> RunConfig:
    """Settles the epochs of the open phases of a stage.

    The run sees every image at most `passes` times. With a pace it also ends
    within `minutes`, measurements, export and report included, if one epoch of
    each phase does; several open stages divide the minutes. Without a pace,
    phases of settled length say how long the others are. If the number of
    epochs between validations is open too, there are four to eight.

    Args:
        config: The configuration.
        index: Number of the stage.
        data: Images of the stage.
        pace: `TrainingPace`, if `minutes` bounds the run. Defaults to `None`.
        test_images: Number of test images of the run. Defaults to `0`.
        again: Length of a final training, in lengths of this one. Defaults to
            `0.0`, none.
        seconds_used: Seconds since the start of the command. Defaults to
            `0.0`.

    Returns:
        The configuration with the lengths of the stage.

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
        most = round(config.passes * len(data.fit) / batch / steps)
        if config.minutes is not None and pace is not None:
            after = TEST_PASSES * pace.image * test_images
            within = _epochs_within(
                config, index, data, pace, again, seconds_used + after
            )
            most = min(most, within)
        elif settled:
            most = settled + _epochs_of_open_phases(phases)
        most = max(least, most)
    every = config.evaluation.every or _epochs_between_validations(most)
    stages = list(config.stages)
    divided = _divided(phases, most - settled, every)
    stages[index] = stages[index].changed(phases=divided)
    return config.changed(stages=stages, evaluation={"every": every})


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
    return (
        f"{counted(epochs, 'epoch')}, {steps:,} steps of {batch} images"
        f"{lasts}; every image is seen "
        f"{steps * batch / len(data.fit):.1f} times"
    )


def measure_pace(
    models: Models, data: StageData, config: RunConfig, index: int
) -> TrainingPace:
    """Measures the seconds of a training step and of embedding an image.

    The models are as before afterwards. Workers agree on the slowest pace.

    Args:
        models: The models of the stage.
        data: Its images.
        config: The configuration.
        index: Number of the stage.
    """
    trainer, fit = models.trainer, data.fit
    steps = len(make_sampler(fit, config)(0))
    images = fit.select(np.arange(min(len(fit), TIMED_IMAGES)))
    image = _seconds(models, images, config)
    phase = next(
        phase for phase in config.stages[index].phases if phase.epochs is None
    )
    before = [np.array(variable) for variable in trainer.variables]
    compile_for(trainer, phase, config, 1, steps)
    if distribute.num_workers() > 1:
        trainer.optimizer.build(trainer.trainable_variables)
        repair_fit(trainer, lambda: False)
    timer = StepTimer()
    trainer.fit(
        train_batches(fit, config, first_epoch=0, steps=steps),
        epochs=1,
        steps_per_epoch=UNTIMED_STEPS + TIMED_STEPS,
        shuffle=False,
        verbose=0,
        callbacks=[timer],
    )
    freezing.unfreeze(trainer.get_layer("backbone"))
    for variable, value in zip(trainer.variables, before, strict=True):
        variable.assign(value)
    paces = distribute.gather((timer.seconds, image))
    return TrainingPace(*(max(column) for column in zip(*paces, strict=True)))


def _seconds(models: Models, images: Manifest, config: RunConfig) -> float:
    """Returns the seconds to embed an image, from its file to its vector."""
    forward = forward_function(models.embedder)
    batches = evaluation_batches(images, config)
    for inputs, _ in batches.take(1):
        forward(inputs["image"])  # traces the graph
    started = time.perf_counter()
    for inputs, _ in batches:
        forward(inputs["image"])
    return (time.perf_counter() - started) / len(images)


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
) -> int:
    """Returns the most epochs of a stage that end within the minutes."""
    assert config.minutes is not None
    validated = pace.image * (len(data.validation) if data.validation else 0)
    every = config.evaluation.every
    passes = INTERPOLATION_PASSES + (0 if every else MOST_VALIDATIONS)
    before = seconds_elsewhere + passes * validated
    before += FIXED_SECONDS * (1 + (again > 0))
    epoch = len(make_sampler(data.fit, config)(0)) * pace.step * (1 + again)
    epoch += validated / every if every else 0
    least = sum(phase.epochs or 1 for phase in config.stages[index].phases)
    waiting = sum(map(has_open_phase, config.stages[index:]))
    within = int((60 * config.minutes - before) / waiting / epoch)
    if within < least:
        logger.warning(
            "%g minutes are too few on this machine: %d %s trained, and the "
            "command takes about %d minutes. Give it more `minutes` or choose "
            "a smaller network.",
            config.minutes,
            least,
            "epoch is" if least == 1 else "epochs are",
            math.ceil((before + waiting * least * epoch) / 60),
        )
    return within


def _divided(
    phases: list[PhaseConfig], epochs: int, every: int
) -> list[PhaseConfig]:
    """Divides epochs among the open phases; the first takes the rest.

    If there are enough, each phase ends with a validation.
    """
    open_phases = [phase for phase in phases if phase.epochs is None]
    if not open_phases:
        return phases
    unit = every if epochs // every >= len(open_phases) else 1
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
