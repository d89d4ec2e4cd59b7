"""Measures how fast a run trains and embeds on this machine."""

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np

from keras_dml import distribute
from keras_dml.config import PhaseConfig, RunConfig
from keras_dml.data import large_photos
from keras_dml.data.manifest import Manifest
from keras_dml.distribute.worker_fit import repair_fit
from keras_dml.models import forward_function
from keras_dml.run.batches import (
    augmentation_of,
    class_groups,
    evaluation_batches,
    make_sampler,
    train_batches,
)
from keras_dml.run.cached_features import CachedFeatures
from keras_dml.run.compiling import compile_for, unfreeze
from keras_dml.run.data import StageData
from keras_dml.run.models import Models

# The first steps trace the graph and fill the pipeline.
UNTIMED_STEPS = 3
TIMED_STEPS = 6
TIMED_IMAGES = 256
# No further step is timed after so many seconds.
TIMING_SECONDS = 30.0
# How much longer a step takes in the mean of a training than right after its
# start: docs/lab/performance.md, "Where the time of a command goes".
STEADY = 1.2


@dataclasses.dataclass(frozen=True)
class TrainingPace:
    """How fast a run trains and embeds on this machine.

    Attributes:
        step: Seconds of a training step.
        image: Seconds to embed an image.
        tracing: Seconds until the first steps are done. Defaults to `0.0`.
        keeping: Seconds to read an image for the first time, where some are
            large photos, of which smaller copies are kept. Defaults to `0.0`.
    """

    step: float
    image: float
    tracing: float = 0.0
    keeping: float = 0.0


class _StepTimer(keras.callbacks.Callback):
    """Notes when steps end, and ends a training after some seconds.

    Attributes:
        times: The time before the first step, and after each.
    """

    times: list[float]

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def on_train_begin(self, logs=None):
        self.times = [time.perf_counter()]

    def on_train_batch_end(self, batch, logs=None):
        self.times.append(time.perf_counter())
        enough = len(self.times) > 2
        if enough and self.times[-1] - self.times[0] > self._seconds:
            self.model.stop_training = True


def measure_pace(
    models: Models,
    data: StageData,
    config: RunConfig,
    index: int,
    features: CachedFeatures | None = None,
    image_seconds: float | None = None,
) -> TrainingPace:
    """Measures the seconds of a training step and of embedding an image.

    The models are as before afterwards. Workers agree on the slowest pace.

    Args:
        models: The models of the stage.
        data: Its images.
        config: The configuration.
        index: Number of the stage.
        features: `CachedFeatures` of a network that does not train. Defaults
            to `None`.
        image_seconds: Seconds to embed an image, where they are known.
            Defaults to `None`, which measures them.
    """
    trainer, fit = models.trainer, data.fit
    steps = len(make_sampler(fit, config)(0))
    if image_seconds is None:
        image_seconds = embedding_seconds(models.embedder, fit, config)
    phases = [one for one in config.stages[index].phases if one.epochs is None]
    phase = main_phase(phases, [one.share for one in phases])
    before = [np.array(variable) for variable in trainer.variables]
    compile_for(trainer, phase, config, 1, steps, class_groups(fit, config))
    # TensorFlow traces a step twice if it makes variables.
    trainer.optimizer.build(trainer.trainable_variables)
    if distribute.num_workers() > 1:
        repair_fit(trainer, lambda: False)
    batches = (
        train_batches(fit, config, first_epoch=0, steps=steps)
        if features is None
        else features.train_batches(first_epoch=0)
    )
    # A pipeline loads images while the first step is traced, which the next
    # steps find loaded: those of a pipeline that begins are timed.
    began, traced = step_times(trainer, batches, 1)
    keeping = again = 0.0
    if features is None and large_photos.kept():
        keeping, again = _keeping(batches, fit, config)
    # Workers take each step together.
    bound = TIMING_SECONDS if distribute.num_workers() == 1 else math.inf
    times = step_times(trainer, batches, UNTIMED_STEPS + TIMED_STEPS, bound)
    timed = times[min(UNTIMED_STEPS, len(times) - 2) :]
    step = STEADY * (timed[-1] - timed[0]) / (len(timed) - 1) + again
    tracing = max(0.0, traced - began - step)
    unfreeze(trainer)
    for variable, value in zip(trainer.variables, before, strict=True):
        variable.assign(value)
    paces = distribute.gather((step, image_seconds, tracing, keeping))
    return TrainingPace(*(max(column) for column in zip(*paces, strict=True)))


def main_phase(
    phases: Sequence[PhaseConfig], lengths: Sequence[float]
) -> PhaseConfig:
    """Returns the longest phase, if possible one that trains the network.

    A step of a frozen network, such as in most warm-ups, is several times
    faster.

    Args:
        phases: The phases.
        lengths: The length of each, in any unit.
    """
    pairs = zip(phases, lengths, strict=True)
    phase, _ = max(pairs, key=lambda one: (one[0].freeze == "none", one[1]))
    return phase


def step_times(
    trainer: keras.Model, batches: Any, steps: int, seconds: float = math.inf
) -> list[float]:
    """Trains, and returns the time before the first step and after each.

    Args:
        trainer: A compiled trainer.
        batches: Dataset of its batches.
        steps: How many to take.
        seconds: After how long to take no further one, but two at least.
            Defaults to infinity.
    """
    timer = _StepTimer(seconds)
    trainer.fit(
        batches,
        epochs=1,
        steps_per_epoch=steps,
        shuffle=False,
        verbose=0,
        callbacks=[timer],
    )
    return timer.times


def _keeping(
    batches: Any, fit: Manifest, config: RunConfig
) -> tuple[float, float]:
    """Keeps the photos of the next steps, and measures how long that takes.

    Args:
        batches: Dataset of training batches, some of whose photos are kept.
        fit: The training images.
        config: The configuration.

    Returns:
        Tuple of the seconds to read an image for the first time; and the
        seconds of a step for photos that do not fit into the memory.
    """
    steps = UNTIMED_STEPS + TIMED_STEPS
    large_photos.forget()
    started = time.perf_counter()
    for step, _ in enumerate(batches, start=1):
        if step == steps:
            break
    seconds = time.perf_counter() - started
    rows = make_sampler(fit, config)(0)[:steps]
    read = len(np.unique(np.concatenate(rows)))
    side = large_photos.smallest_side(
        config.data.train_shape[0], augmentation_of(config)
    )
    room, kept = large_photos.room(side), large_photos.kept()
    share = 1.0 if kept >= room else min(1.0, kept / read)
    missing = 1 - min(1.0, room / max(share * len(fit), 1.0))
    first = seconds / read
    return first, missing * first * len(rows[0])


def embedding_seconds(
    model: keras.Model, images: Manifest, config: RunConfig
) -> float:
    """Returns the seconds to embed an image, from its file to its vector.

    Args:
        model: The embedder, or its network.
        images: Images, of which the first are embedded.
        config: The configuration.
    """
    forward = forward_function(model)
    images = images.select(np.arange(min(len(images), TIMED_IMAGES)))
    batches = evaluation_batches(images, config)
    for inputs, _ in batches.take(1):
        forward(inputs["image"])  # traces the graph
    started = time.perf_counter()
    for inputs, _ in batches:
        forward(inputs["image"])
    return (time.perf_counter() - started) / len(images)
