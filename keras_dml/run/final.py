"""Trains once more on every class, as a measured run has trained."""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from keras_dml import distribute
from keras_dml.config import PhaseConfig, RunConfig, StageConfig
from keras_dml.config.values import scaled
from keras_dml.console import logger
from keras_dml.data.made_classes import upright
from keras_dml.distribute.strategies import PEER_TIMEOUT
from keras_dml.run.agreement import showing_log_on_chief, with_own_paths
from keras_dml.run.data import (
    RunData,
    read_images,
    split_data,
    stage_data,
)
from keras_dml.run.fit import fit
from keras_dml.run.folder import RunFolder
from keras_dml.run.history import History, read_history
from keras_dml.run.prefixes import CutRun
from keras_dml.run.thresholds import CARRIED, usual_thresholds
from keras_dml.run.trained_run import TrainedRun

FOLDER = "final"


def fit_final(
    folder: RunFolder,
    metrics: Mapping[str, Any],
    config: RunConfig,
    *,
    peer_timeout: float = PEER_TIMEOUT,
    export: Callable[..., object] | None = None,
    verbose: bool = False,
) -> Path:
    """Trains on the classes of training, validation and test together.

    The settings are those of the measured run, with what it learned: every
    image is seen as often, and the shrinkage of the whitening and the share
    of the interpolation are those that its validation classes chose. Where a
    `plateau` or a `stop_tail` lowered the rates, those of the start stay: when
    they fell is no setting, and no class is left to say it again. The results
    in `metrics.json` stay those of the measured run, because no class is left
    to measure this one on, and so do the thresholds of a match.

    Args:
        folder: The folder of the measured run, which must be finished.
        metrics: Its metrics.
        config: The settings that it was asked for, with the paths of the
            images on this worker.
        peer_timeout: See `fit`. Defaults to `120.0`.
        export: See `fit`. Defaults to `None`.
        verbose: See `fit`. Defaults to `False`.

    Returns:
        The run folder of the final training, `RUN/final`.
    """
    output = folder.path / FOLDER
    if distribute.broadcast(RunFolder(output).finished):
        with showing_log_on_chief():
            logger.info("%s is finished; nothing is trained.", output)
        return output
    settings = distribute.together(lambda: _settings(folder, metrics))
    config = with_own_paths(distribute.broadcast(settings), config)
    if distribute.num_workers() == 1:
        run = TrainedRun(folder.path)
        thresholds = usual_thresholds(run)
        for size in metrics.get("prefixes", {}):
            thresholds |= usual_thresholds(CutRun(run, int(size)))
        metrics = {**metrics, CARRIED: thresholds}
    with showing_log_on_chief():
        logger.info("Training once more, on all classes: %s ...", output)
    fit(
        config,
        output,
        resume=output.is_dir(),
        peer_timeout=peer_timeout,
        export=export,
        measured=metrics,
        verbose=verbose,
    )
    return output


def _settings(
    folder: RunFolder, metrics: Mapping[str, Any]
) -> dict[str, Any] | None:
    if not distribute.is_chief():
        return None
    history = read_history(folder.history)
    config = final_config(folder.load_config(), metrics, history)
    return config.model_dump(mode="json")


def final_config(
    config: RunConfig, metrics: Mapping[str, Any], history: History
) -> RunConfig:
    """Returns the settings of the final training of a measured run.

    Args:
        config: The settings of the measured run, as its folder holds them.
        metrics: Its metrics.
        history: Its epochs.
    """
    # Version 0.1 wrote neither.
    chosen = metrics.get("interpolation", {})
    shrinkage = metrics.get("shrinkage")
    whitens = shrinkage is not None and not chosen.get("kept")
    whitening = [shrinkage] if whitens else []
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
    if not keeps:
        return final.changed(
            stages=[
                stage.changed(phases=_unwatched(stage, [1] * len(stage.phases)))
                for stage in config.stages
            ]
        )
    data = split_data(read_images(config), config)
    stages = [
        _longer(stage, _trained(stage, config, history), config, data)
        for stage in config.stages
    ]
    # What is outside of the stages goes by the last one, whose weights remain.
    more = _more_of(config.stages[-1], config, data)
    final = scaled(final, more, more).changed(stages=stages)
    if steps and len(stages) == 1:
        trained = sum(_trained(config.stages[0], config, history))
        epochs = sum(phase.epochs or 0 for phase in stages[0].phases)
        # Whole epochs of as many steps could take half as long again.
        steps = max(1, round(steps * more * trained / epochs))
    return final.changed(sampling={"steps_per_epoch": steps})


def _trained(
    stage: StageConfig, config: RunConfig, history: History
) -> list[int]:
    """Returns the epochs of each phase, up to the weights that were kept."""
    names = [name.partition("/")[0] for name in history.phases]
    rows = [row for row, name in enumerate(names) if name == stage.name]
    if not rows:
        # Without `history.csv`, which may be deleted.
        return [phase.epochs or 1 for phase in stage.phases]
    values = history.values(f"val_{config.evaluation.monitor}")
    measured = [row for row in rows if row in values]
    if config.evaluation.select == "best" and measured:
        best = max(measured, key=lambda row: values[row])
        rows = rows[: rows.index(best) + 1]
    counts = Counter(history.phases[row] for row in rows)
    return [counts[f"{stage.name}/{phase.name}"] for phase in stage.phases]


def _longer(
    stage: StageConfig, trained: list[int], config: RunConfig, data: RunData
) -> StageConfig:
    """Returns a stage in which more images are seen as often."""
    more = _more_of(stage, config, data)
    moved = scaled(stage, more, more)
    if stage.classes == "first_half":
        # The other half of the classes goes on to say when rates fall.
        phases = [
            phase.changed(epochs=math.ceil((phase.epochs or 1) * more))
            for phase in moved.phases
        ]
        return moved.changed(phases=phases)
    epochs = [math.ceil(count * more) for count in trained]
    return moved.changed(phases=_unwatched(moved, epochs))


def _more_of(stage: StageConfig, config: RunConfig, data: RunData) -> float:
    """Returns the epochs in which all images are seen as often as in one."""
    if not config.sampling.steps_per_epoch:
        # An epoch is as long as the images are many.
        return 1.0
    seen = data.train
    if stage.classes != "first_half":
        seen = upright(stage_data(data, stage, config).fit)
    return (len(data.train) + len(data.test)) / len(seen)


def _unwatched(stage: StageConfig, epochs: list[int]) -> list[PhaseConfig]:
    """Returns the phases that train; no class is left for them to follow."""
    return [
        phase.changed(
            epochs=count, plateau=None, stop_patience=None, stop_tail=0
        )
        for phase, count in zip(stage.phases, epochs, strict=True)
        if count
    ]
