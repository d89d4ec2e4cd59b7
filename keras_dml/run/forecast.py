"""Predicts the course of a run from its configuration and its data."""

import dataclasses

from keras_dml.brief import Brief
from keras_dml.config import Explanation, RunConfig, StageConfig
from keras_dml.data.manifest import Manifest
from keras_dml.run.batches import make_sampler
from keras_dml.run.compiling import fine_tuning_rate, has_open_rate
from keras_dml.run.data import StageData, read_images, split_data, stage_data
from keras_dml.run.length import with_length
from keras_dml.run.refit import may_refit
from keras_dml.run.settling import settle
from keras_dml.run.stage_checks import check_stages


@dataclasses.dataclass(frozen=True)
class StageForecast:
    """The images and the length of one stage of a run.

    Attributes:
        stage: Its name.
        train_classes, train_images: Numbers of its training classes and
            images.
        validation_classes, validation_images: Numbers of its validation
            classes and images; 0 without validation.
        epochs: Number of epochs of all its phases, or `None` if `minutes` and
            the pace of training decide. A stage that replays an earlier one
            may end before.
        steps_per_epoch: Number of batches of an epoch on one device.
        rates: The rates of the phases for the groups of variables whose `lr`
            is null; `None` where no group's is, or `minutes` decide.
    """

    stage: str
    train_classes: int
    train_images: int
    validation_classes: int
    validation_images: int
    epochs: int | None
    steps_per_epoch: int
    rates: tuple[float, ...] | None


@dataclasses.dataclass(frozen=True, repr=False)
class Forecast(Brief):
    """The settings, stages and test images of a run, known before training.

    Attributes:
        explanation: The configuration without open settings, except lengths
            that follow from `minutes`. Settings that were filled in from the
            data have the origin `"data"`.
        stages: A `StageForecast` for each stage. That of a refit is the last;
            there is none if the pretrained network is kept.
        test_classes, test_images: Numbers of test classes and images.
        seen: Whether the test classes are also training classes.
    """

    explanation: Explanation
    stages: tuple[StageForecast, ...]
    test_classes: int
    test_images: int
    seen: bool


def forecast(explanation: Explanation) -> Forecast:
    """Predicts the course of a run. Images are listed, not decoded.

    Args:
        explanation: The configuration, as `keras_dml.config.explain` returns
            it.

    Raises:
        UsageError: If the data cannot be read, or `fit` would refuse to train.

    Example:

    ```python
    from keras_dml.config import explain

    forecast(explain("triplet", "digits")).stages[0].steps_per_epoch
    ```
    """
    config = explanation.config
    data = split_data(read_images(config), config)
    config = settle(config, data)
    parts = check_stages(config, data)
    if config.minutes is None:
        for index, part in enumerate(parts):
            config = with_length(config, index, part)
    refits = config.trainings[len(parts) :]
    refits = refits if may_refit(config, parts[-1]) else []
    parts += [stage_data(data, stage, config) for stage in refits]
    return Forecast(
        explanation.changed(config, "data"),
        tuple(
            _forecast_of(stage, part, config)
            for stage, part in zip(config.trainings, parts, strict=False)
        ),
        *_size(data.test),
        data.seen,
    )


def _forecast_of(
    stage: StageConfig, part: StageData, config: RunConfig
) -> StageForecast:
    steps = len(make_sampler(part.fit, config)(0))
    known = [one.epochs for one in stage.phases if one.epochs is not None]
    epochs = sum(known) if len(known) == len(stage.phases) else None
    rates = None
    if epochs is not None and has_open_rate(config.optimizer):
        rates = tuple(
            phase.lr_factor
            * fine_tuning_rate(length * steps, phase.freeze != "none")
            for length, phase in zip(known, stage.phases, strict=True)
        )
    return StageForecast(
        stage.name,
        part.fit.num_classes,
        len(part.fit),
        *_size(part.validation),
        epochs,
        steps,
        rates,
    )


def _size(manifest: Manifest | None) -> tuple[int, int]:
    return (manifest.num_classes, len(manifest)) if manifest else (0, 0)
