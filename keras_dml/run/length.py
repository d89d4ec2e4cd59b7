"""Plans how long a run trains, from its images and the minutes it may take."""

import dataclasses
import math
import time

import keras
import numpy as np

from keras_dml import distribute
from keras_dml.config import PhaseConfig, RunConfig, StageConfig
from keras_dml.console import logger
from keras_dml.models import freezing
from keras_dml.run.compiling import compile_for
from keras_dml.run.data import StageData, make_sampler, train_batches
from keras_dml.run.measure import embed
from keras_dml.run.models import Models

# The first steps trace the graph and fill the pipeline.
UNTIMED_STEPS = 3
TIMED_STEPS = 6
TIMED_IMAGES = 256
# How often a planned training validates.
VALIDATIONS = 8
# Seconds that the command takes beside what grows with the images: start of
# the process, tracing, export and report, measured on two cores.
FIXED_SECONDS = 45.0
# How often a run embeds its validation images, interpolation included, and,
# after training, its test images: measured, compared with exports, shown.
VALIDATION_PASSES = VALIDATIONS + 6
TEST_PASSES = 2


@dataclasses.dataclass(frozen=True)
class Pace:
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


def is_open(stage: StageConfig) -> bool:
    """Whether a stage has a phase whose length is not settled."""
    return any(phase.epochs is None for phase in stage.phases)


def with_length(
    config: RunConfig,
    index: int,
    data: StageData,
    *,
    pace: Pace | None = None,
    test_images: int = 0,
    again: float = 0.0,
    seconds_used: float = 0.0,
) -> RunConfig:
    """Settles the epochs of the open phases of a stage.

    The run sees every image at most `passes` times. With a pace it also ends
    within `minutes`, measurements, export and report included, if one epoch
    does. Without one, phases of settled length say how long the others are.
    If the number of epochs between validations is open too, there are eight.

    Args:
        config: The configuration.
        index: Number of the stage.
        data: Images of the stage.
        pace: `Pace`, if `minutes` bounds the run. Defaults to `None`.
        test_images: Number of test images of the run. Defaults to `0`.
        again: Length of a final training, in lengths of this one. Defaults to
            `0.0`, none.
        seconds_used: Seconds since the start of the command. Defaults to
            `0.0`.
    """
    stage = config.stages[index]
    if not is_open(stage):
        return config
    steps = len(make_sampler(data.fit, config)(0))
    batch = config.sampling.batch_size
    most = max(1, round(config.passes * len(data.fit) / batch / steps))
    if config.minutes is not None and pace is not None:
        validated = len(data.validation) if data.validation else 0
        embedded = VALIDATION_PASSES * validated + TEST_PASSES * test_images
        before = seconds_used + FIXED_SECONDS + pace.image * embedded
        before += FIXED_SECONDS * (again > 0)
        epoch = steps * pace.step * (1 + again)
        left = 60 * config.minutes - before
        if left < epoch:
            logger.warning(
                "%g minutes are too few on this machine: one epoch is trained, "
                "and the command takes about %d minutes. Give it more `minutes`"
                " or choose a smaller network.",
                config.minutes,
                math.ceil((before + epoch) / 60),
            )
        most = min(most, max(1, int(left / epoch)))
    elif any(phase.epochs is not None for phase in stage.phases):
        most = _epochs_of_open_phases(stage.phases)
    every = config.evaluation.every or math.ceil(most / VALIDATIONS)
    if most > every:
        # The last epoch is validated too.
        most = most // every * every
    stages = list(config.stages)
    stages[index] = stage.changed(phases=_divided(stage.phases, most))
    return config.changed(stages=stages, evaluation={"every": every})


def announce(
    config: RunConfig, index: int, data: StageData, pace: Pace | None
) -> None:
    """Says how long the planned training is."""
    phases = config.stages[index].phases
    epochs = sum(phase.epochs or 0 for phase in phases)
    steps = epochs * len(make_sampler(data.fit, config)(0))
    batch = config.sampling.batch_size
    lasts = ""
    if pace is not None:
        lasts = f", about {steps * pace.step / 60:.1f} minutes"
    logger.info(
        "Training takes %s steps of %d images%s: every image is seen %.1f "
        "times.",
        f"{steps:,}",
        batch,
        lasts,
        steps * batch / len(data.fit),
    )


def measure_pace(
    models: Models, data: StageData, config: RunConfig, index: int
) -> Pace:
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
    started = time.perf_counter()
    embed(models.embedder, images, config)
    image = (time.perf_counter() - started) / len(images)
    phase = next(
        phase for phase in config.stages[index].phases if phase.epochs is None
    )
    before = [np.array(variable) for variable in trainer.variables]
    compile_for(trainer, phase, config, 1, steps)
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
    return Pace(*(max(column) for column in zip(*paces, strict=True)))


def _epochs_of_open_phases(phases: list[PhaseConfig]) -> int:
    """Returns the epochs that settled phases give the others by their share."""
    settled = [phase for phase in phases if phase.epochs is not None]
    epochs = sum(phase.epochs or 0 for phase in settled)
    share = sum(phase.share for phase in settled)
    others = sum(phase.share for phase in phases) - share
    return max(1, round(epochs * others / share))


def _divided(phases: list[PhaseConfig], epochs: int) -> list[PhaseConfig]:
    """Divides epochs among the open phases; the first takes the rest."""
    open_phases = [phase for phase in phases if phase.epochs is None]
    whole = sum(phase.share for phase in open_phases)
    lengths = [max(1, int(epochs * one.share / whole)) for one in open_phases]
    lengths[0] = max(1, lengths[0] + epochs - sum(lengths))
    remaining = iter(lengths)
    return [
        phase.changed(epochs=next(remaining)) if phase.epochs is None else phase
        for phase in phases
    ]
