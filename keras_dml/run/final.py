"""Trains once more on every class, as a measured run has trained."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_dml import distribute
from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.distribute.strategies import PEER_TIMEOUT
from keras_dml.run.agreement import logging_on_chief
from keras_dml.run.data import load_run_data, stage_data
from keras_dml.run.fit import fit
from keras_dml.run.folder import RunFolder
from keras_dml.run.thresholds import CARRIED, usual_thresholds
from keras_dml.run.trained_run import TrainedRun

FOLDER = "final"


def fit_final(
    folder: RunFolder,
    metrics: Mapping[str, Any],
    *,
    peer_timeout: float = PEER_TIMEOUT,
    export: Callable[..., object] | None = None,
) -> Path:
    """Trains on the classes of training, validation and test together.

    The settings are those of the measured run, with what it learned: every
    image is seen as often, and the shrinkage of the whitening and the share
    of the interpolation are those that its validation classes chose. The
    results in `metrics.json` stay those of the measured run, because no class
    is left to measure this one on, and so do the thresholds of a match.

    Args:
        folder: The folder of the measured run, which must be finished.
        metrics: Its metrics.
        peer_timeout: See `fit`. Defaults to `120.0`.
        export: See `fit`. Defaults to `None`.

    Returns:
        The run folder of the final training, `RUN/final`.
    """
    output = folder.path / FOLDER
    config = final_config(folder.load_config(), metrics)
    if distribute.num_workers() == 1:
        thresholds = usual_thresholds(TrainedRun(folder.path))
        metrics = {**metrics, CARRIED: thresholds}
    with logging_on_chief():
        logger.info("Training once more, on all classes: %s ...", output)
    fit(
        config,
        output,
        resume=output.is_dir(),
        peer_timeout=peer_timeout,
        export=export,
        measured=metrics,
    )
    return output


def final_config(config: RunConfig, metrics: Mapping[str, Any]) -> RunConfig:
    """Returns the settings of the final training of a measured run.

    Args:
        config: The settings of the measured run, as its folder holds them.
        metrics: Its metrics.
    """
    chosen = metrics["interpolation"]
    whitens = metrics["shrinkage"] is not None and not chosen.get("kept")
    whitening = [metrics["shrinkage"]] if whitens else []
    # Training that is not kept must still be run, by one step.
    keeps = not (chosen.get("kept") or chosen.get("share") == 0)
    steps = config.sampling.steps_per_epoch if keeps else 1
    final = config.changed(
        final="measured",
        refit=False,
        data={"all_classes": True, "validation": "none"},
        sampling={"steps_per_epoch": steps},
        model={"whitening": whitening},
        evaluation={"interpolate": [chosen["share"]] if chosen else []},
    )
    data = load_run_data(config)
    stages = []
    for stage in config.stages:
        images = len(stage_data(data, stage, config).fit)
        more = (len(data.train) + len(data.test)) / images
        stages.append(
            stage.changed(
                phases=[
                    # No class is left to follow.
                    phase.changed(
                        epochs=_longer(phase.epochs, more) if keeps else 1,
                        plateau=None,
                        stop_patience=None,
                    )
                    for phase in stage.phases
                ]
            )
        )
    return final.changed(stages=stages)


def _longer(epochs: int | None, more: float) -> int:
    """Returns the epochs in which more images are seen as often."""
    return 1 if epochs is None else math.ceil(epochs * more)
