"""Checks, before anything is written, that every stage can be trained."""

import tensorflow as tf

from keras_dml.config import RunConfig, load_recipe
from keras_dml.console import logger
from keras_dml.errors import UsageError
from keras_dml.run.batches import make_sampler
from keras_dml.run.compiling import (
    build_loss,
    build_memory,
    build_optimizer,
    loss_head,
)
from keras_dml.run.data import RunData, StageData, stage_data
from keras_dml.run.memory import check_memory
from keras_dml.run.replica_checks import check_batches


def check_stages(
    config: RunConfig,
    data: RunData,
    replicas: int = 1,
    built: set[str] | None = None,
) -> list[StageData]:
    """Raises, before anything is written, if a stage cannot be trained.

    Args:
        config: The settled configuration.
        data: The images of the run.
        replicas: Number of replicas that train. Defaults to `1`.
        built: Losses and optimizers that were built before, in words; they
            are not built again, and the function adds those of this run.
            Defaults to `None`, none.

    Returns:
        The training and validation images of each stage.

    Raises:
        UsageError: If the loss or an optimizer does not take its arguments,
            arrays do not fit into memory, batches cannot be drawn or shared,
            a phase follows a validation metric without validation classes or
            lowers rates that follow a schedule, or a stage replays one that
            is not earlier.
    """
    built = set() if built is None else built
    settings = f"{config.loss!r} {config.optimizer!r}"
    if settings not in built:
        _build(config)
        built.add(settings)
    head = loss_head(config.loss)
    groups = ["backbone", "head"]
    groups += ["proxies"] if head.has_variables else []
    scheduled = [
        f"`optimizer.{name}`"
        for name in groups
        if (group := getattr(config.optimizer, name)).schedule != "constant"
        or group.warmup_steps
    ]
    found: list[StageData] = []
    earlier: list[str] = []
    for stage in config.stages:
        parts = stage_data(data, stage, config)
        check_memory(config, parts.fit)
        make_sampler(parts.fit, config)(0)
        check_batches(parts.fit, config, replicas)
        watches = [
            phase.name
            for phase in stage.phases
            if phase.plateau is not None or phase.stop_patience is not None
        ]
        if watches and parts.validation is None:
            raise UsageError(
                f"Phase `{watches[0]}` of stage `{stage.name}` follows a "
                "validation metric, but the stage has no validation classes. "
                "Remove `plateau` and `stop_patience`, or use at least "
                f"{config.data.validation_from} training classes."
            )
        if scheduled and any(phase.plateau for phase in stage.phases):
            raise UsageError(
                "`plateau` lowers learning rates, which a schedule would "
                f"overrule. Received: a schedule of {', '.join(scheduled)}. "
                "Set their `schedule` to `constant` and `warmup_steps` to 0, "
                f"or remove `plateau` from stage `{stage.name}`."
            )
        if stage.replay is not None and stage.replay not in earlier:
            raise UsageError(
                f"Stage `{stage.name}` replays `{stage.replay}`, which is no "
                f"earlier stage. Earlier stages: {earlier or 'none'}."
            )
        earlier.append(stage.name)
        found.append(parts)
    return found


def _build(config: RunConfig) -> None:
    """Builds the loss and the optimizers, which raise for their arguments.

    It does so in a graph, where nothing runs: a comparison checks its runs in
    a process that must leave the memory of the GPUs to their trainings.
    """
    with tf.Graph().as_default():
        build_loss(config.loss)
        # The blocks of a decay are known once there is a network.
        whole = config.optimizer.changed(backbone={"layer_decay": 1.0})
        head = loss_head(config.loss)
        build_optimizer(whole, epochs=1, steps_per_epoch=1, head=head)
        build_memory(config.loss)


def warn_about_section(config: RunConfig) -> None:
    """Warns if the settings of a paper train another network than its own."""
    if config.section == "default":
        return
    paper = load_recipe(config.recipe.partition(":")[0]).backbone
    if paper and paper != config.model.backbone:
        logger.warning(
            "The settings of `%s` for `%s` were found with %s; you train "
            "%s. They may not fit: compare with the recipe's defaults, "
            "`recipe='%s:default'`.",
            config.recipe,
            config.section,
            paper,
            config.model.backbone,
            config.recipe.partition(":")[0],
        )
