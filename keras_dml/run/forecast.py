"""What a run will do, from its configuration and its data, without training."""

import dataclasses

from keras_dml.config import Explanation
from keras_dml.data import readers
from keras_dml.data.manifest import Manifest
from keras_dml.run.data import make_sampler, settle, split_data, stage_data


@dataclasses.dataclass(frozen=True)
class StageForecast:
    """What one stage of a run trains on, and for how long.

    Attributes:
        stage: Its name.
        train_classes, train_images: What it trains on.
        validation_classes, validation_images: What validates it, 0 if nothing
            does.
        epochs: Epochs of all its phases. A stage that replays an earlier one
            may end before.
        steps_per_epoch: Batches of an epoch on one device.
    """

    stage: str
    train_classes: int
    train_images: int
    validation_classes: int
    validation_images: int
    epochs: int
    steps_per_epoch: int


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What follows from a configuration once its data are known.

    Attributes:
        explanation: The configuration with nothing left open; what the data
            have settled has the origin `"data"`.
        stages: A `StageForecast` for each stage.
        test_classes, test_images: What the embedder is measured on.
        seen: Whether the test classes are also training classes.
    """

    explanation: Explanation
    stages: tuple[StageForecast, ...]
    test_classes: int
    test_images: int
    seen: bool


def forecast(explanation: Explanation) -> Forecast:
    """Says what a run will do. Images are listed, not decoded.

    Args:
        explanation: The configuration, as `keras_dml.config.explain` returns
            it.

    Raises:
        UsageError: If the data cannot be read.

    Example:

    ```python
    from keras_dml.config import explain

    forecast(explain("triplet", "digits")).stages[0].steps_per_epoch
    ```
    """
    settings = explanation.config.data
    data = split_data(
        readers.read(
            settings.source,
            data_dir=settings.data_dir,
            allow_partial=settings.allow_partial,
        ),
        explanation.config,
    )
    config = settle(explanation.config, data)
    stages = []
    for stage in config.stages:
        part = stage_data(data, stage, config)
        stages.append(
            StageForecast(
                stage.name,
                part.fit.num_classes,
                len(part.fit),
                *_size(part.validation),
                sum(phase.epochs for phase in stage.phases),
                len(make_sampler(part.fit, config)(0)),
            )
        )
    return Forecast(
        explanation.changed(config, "data"),
        tuple(stages),
        *_size(data.test),
        data.seen,
    )


def _size(manifest: Manifest | None) -> tuple[int, int]:
    return (manifest.num_classes, len(manifest)) if manifest else (0, 0)
