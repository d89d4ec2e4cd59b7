"""Divides the minutes of a command among the steps of a stage and the rest."""

import dataclasses
import math
from collections.abc import Sequence

from keras_dml.config import RunConfig, StageConfig
from keras_dml.run.cached_features import VIEWS
from keras_dml.run.data import StageData
from keras_dml.run.models import trains_on_features
from keras_dml.run.pace import TrainingPace
from keras_dml.run.settling import LEAST_TRAIN_SIZE, STRIDE
from keras_dml.run.start import MOST_IMAGES

# The least and the most validations of a planned training, by
# `evaluation.select`: they choose the epoch, or only draw a curve.
VALIDATIONS = {"best": (4, 8), "last": (2, 4)}
# An estimate of export and report on two cores; all else is measured in the
# run. `benchmarks/fixed_cost.py` prints what they take.
EXPORT_SECONDS = 50.0
# How often a run embeds its validation images for the page. The interpolation
# embeds them once for each share.
PAGE_PASSES = 1
# A training of few steps loses more than larger images gain:
# docs/lab/photos.md, "Many photos".
EMBEDDING_SHARE = 0.5


@dataclasses.dataclass(frozen=True)
class StageTime:
    """The seconds that a stage has, and those of what it consists of.

    Attributes:
        elsewhere: What the command needs beside its open stages.
        stages: The number of open stages, of which this is one.
        left: What this stage has.
        step: A step, with as much of later trainings.
        validation: A validation.
        every: Epochs between two validations, or `None` if open.
        most: The most validations if it is open.
    """

    elsewhere: float
    stages: int
    left: float
    step: float
    validation: float
    every: int | None
    most: int

    def epochs(self, steps: int) -> float:
        """Returns how many epochs of so many steps end in time."""
        epoch = steps * self.step
        if self.every:
            # Part of a validation more, for a last epoch between two.
            left = self.left - self.validation * (1 - 1 / self.every)
            return left / (epoch + self.validation / self.every)
        # A short training validates after each epoch.
        short = min(self.most, self.left / (epoch + self.validation))
        return max(short, (self.left - self.most * self.validation) / epoch)

    def steps(self, epochs: int) -> int:
        """Returns how many steps each of so many epochs has in time."""
        left = self.left - self._validating(epochs)
        return math.floor(left / (epochs * self.step) + 1e-6)

    def command(self, epochs: int, steps: int) -> float:
        """Returns what the command takes if each stage has so many epochs."""
        stage = epochs * steps * self.step + self._validating(epochs)
        return self.elsewhere + self.stages * stage

    def _validating(self, epochs: int) -> float:
        # The last epoch validates, whatever `every` is.
        times = (
            math.ceil(epochs / self.every)
            if self.every
            else min(self.most, epochs)
        )
        return times * self.validation


def stage_time(
    config: RunConfig,
    index: int,
    data: StageData,
    pace: TrainingPace,
    later: Sequence[float],
    used: float,
) -> StageTime:
    """Returns the seconds of `minutes` that a stage has for its epochs.

    Args:
        config: The configuration.
        index: Number of the stage.
        data: Its images.
        pace: `TrainingPace` of the run.
        later: Length of each later training, in lengths of this one.
        used: Seconds that are gone, or go, for the start and the test.
    """
    assert config.minutes is not None
    validated = pace.image * (len(data.validation) if data.validation else 0)
    features = 0.0
    if trains_on_features(config):
        validated = 0.0
        # Later trainings compute the features of their images anew.
        features = sum(later) * VIEWS * len(data.fit) * pace.image
    elsewhere = used + _passes_afterwards(config) * validated + features
    # Each phase compiles its step anew.
    traced = (1 + sum(one > 0 for one in later)) * len(
        config.stages[index].phases
    )
    elsewhere += pace.tracing * traced + EXPORT_SECONDS
    stages = sum(map(has_open_phase, config.stages[index:]))
    return StageTime(
        elsewhere=elsewhere,
        stages=stages,
        left=(60 * config.minutes - elsewhere) / stages,
        step=pace.step * (1 + sum(later)),
        validation=validated,
        every=config.evaluation.every,
        most=VALIDATIONS[config.evaluation.select][1],
    )


def affordable_size(
    config: RunConfig, data: StageData, test_images: int, image: float
) -> int:
    """Returns the side of images whose embedding half of the minutes hold.

    Args:
        config: The settled configuration, with `minutes`.
        data: Images of the first stage.
        test_images: Number of test images of the run.
        image: Seconds to embed an image of the size that is settled.

    Returns:
        That size if the minutes are enough, else the largest multiple of 32
        for which they are, but at least 128.
    """
    assert config.minutes is not None and config.data.image_size is not None
    size = config.data.image_size
    # Before the training and after it.
    embedded = 2 * test_images
    if trains_on_features(config):
        embedded += VIEWS * len(data.fit)
    else:
        embedded += min(len(data.fit), MOST_IMAGES)
        if data.validation is not None:
            curve = VALIDATIONS[config.evaluation.select][1]
            # Once for the start.
            passes = 1 + curve + _passes_afterwards(config)
            embedded += passes * len(data.validation)
    if config.final == "all":
        embedded += 2 * test_images + MOST_IMAGES
    allowed = EMBEDDING_SHARE * 60 * config.minutes
    largest = (size - 1) // STRIDE * STRIDE
    for side in (size, *range(largest, LEAST_TRAIN_SIZE - 1, -STRIDE)):
        if embedded * image * (side / size) ** 2 <= allowed:
            return side
    return min(size, LEAST_TRAIN_SIZE)


def _passes_afterwards(config: RunConfig) -> int:
    """Returns how often validation images are embedded after the steps."""
    # The start, 0, is known from its features.
    return len({*config.evaluation.interpolate} - {0.0}) + PAGE_PASSES


def has_open_phase(stage: StageConfig) -> bool:
    """Whether a stage has a phase whose length is not settled."""
    return any(phase.epochs is None for phase in stage.phases)
