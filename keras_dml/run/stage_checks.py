"""Checks, before anything is written, that every stage can be trained."""

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf
from keras import ops

from keras_dml.config import (
    RunConfig,
    StageConfig,
    load_recipe,
)
from keras_dml.console import logger
from keras_dml.errors import UsageError
from keras_dml.layers import ScaledLogits
from keras_dml.models.head import label_input, unused_input
from keras_dml.models.prefixes import connect_head
from keras_dml.run.batches import class_groups, make_sampler
from keras_dml.run.compiling import build_optimizer
from keras_dml.run.data import RunData, StageData, stage_data
from keras_dml.run.image_checks import (
    check_classes,
    check_label_sets,
    check_test,
    check_validation,
)
from keras_dml.run.loss_terms import (
    build_distillation,
    build_loss,
    loss_head,
    trainer_loss,
)
from keras_dml.run.memory import check_memory
from keras_dml.run.models import check_whitening, head_options
from keras_dml.run.replica_checks import check_batches
from keras_dml.wording import listed

# How messages of heads begin, and how those of their settings do.
_SETTINGS = {
    "`sample_aware`: `": "`model.proxies.sample_aware.",
    "`moments`": "`loss.0.moments`",
    "`memory`": "`loss.0.memory`",
}


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
        built: Settings of losses, heads and optimizers that were built
            before; they are not built again, and the function adds those of
            this run. Defaults to `None`, none.

    Returns:
        The training and validation images of each stage.

    Raises:
        UsageError: If loss, head or optimizer do not take their arguments,
            arrays do not fit into memory, images have several labels where a
            setting needs one, batches cannot be drawn or shared,
            no validation or test class has two images, there is but one
            class to train or to test, a phase follows a validation metric
            without validation classes or lowers rates that follow a schedule,
            nothing can be heated, the head cannot start as it should, or a
            stage replays one that is not earlier.
    """
    built = set() if built is None else built
    check_whitening(config.model)
    if not config.data.all_classes:
        check_test(data.test)
    if data.train.has_label_sets:
        check_label_sets(config, data.train)
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
    for stage in config.trainings:
        parts = stage_data(data, stage, config)
        check_memory(config, parts.fit)
        check_classes(stage.name, parts.fit)
        make_sampler(parts.fit, config)(0)
        check_batches(parts.fit, config, replicas)
        if len(found) == len(config.stages):
            # A refit is a stage that was checked, with more images.
            break
        check_validation(stage.name, parts.validation)
        classes = parts.fit.num_classes
        grouped = class_groups(parts.fit, config)
        settings = (
            f"{config.loss} {config.distillation} {config.optimizer} "
            f"{config.model} {classes} {grouped} {_heats(config)}"
        )
        if settings not in built:
            check_arguments(config, classes, grouped)
            built.add(settings)
        _check_heat(stage, config)
        if parts.validation is None:
            _check_follows_none(stage, config)
        if scheduled:
            _check_keeps_rates(stage, scheduled)
        if stage.replay is not None and stage.replay not in earlier:
            raise UsageError(
                f"Stage `{stage.name}` replays `{stage.replay}`, which is no "
                f"earlier stage. Earlier stages: {earlier or 'none'}."
            )
        earlier.append(stage.name)
        found.append(parts)
    return found


def _check_keeps_rates(stage: StageConfig, scheduled: list[str]) -> None:
    """Raises if a phase lowers rates that follow a schedule."""
    heats = [phase.heat for phase in stage.phases if phase.heat]
    lowering = {
        "plateau": any(phase.plateau for phase in stage.phases),
        "heat": any(heat.lr_factor != 1 for heat in heats),
    }
    for name, lowers in lowering.items():
        if lowers:
            raise UsageError(
                f"`{name}` lowers learning rates, which a schedule would "
                f"overrule. Received: a schedule of {', '.join(scheduled)}. "
                "Set their `schedule` to `constant` and `warmup_steps` to 0, "
                f"or remove `{name}` from stage `{stage.name}`."
            )


def _heats(config: RunConfig) -> bool:
    """Whether a phase changes the scale in front of the loss."""
    phases = (phase for stage in config.stages for phase in stage.phases)
    return any(phase.heat for phase in phases)


def _check_heat(stage: StageConfig, config: RunConfig) -> None:
    """Raises if a phase heats to where it begins, or a second one heats."""
    heated = [phase.name for phase in stage.phases if phase.heat]
    if len(heated) > 1:
        raise UsageError(
            f"One phase of stage `{stage.name}` may have `heat`, for the next "
            f"one would begin with the scale of the last. Received: "
            f"{listed([f'`{name}`' for name in heated])}. Heat one of them, or "
            "make one phase of them."
        )
    for phase in stage.phases:
        if phase.heat and phase.heat.scale == config.model.scale:
            raise UsageError(
                f"`heat.scale` of phase `{phase.name}` of stage "
                f"`{stage.name}` must differ from `model.scale`, with which "
                f"training begins. Received: {config.model.scale:g} for both. "
                "Change one of them, or remove `heat`."
            )


def _check_follows_none(stage: StageConfig, config: RunConfig) -> None:
    """Raises if a phase follows a validation metric, which nothing gives."""
    watches = [
        phase.name
        for phase in stage.phases
        if phase.plateau is not None or phase.stop_patience is not None
    ]
    if not watches:
        return
    advice = (
        f"use at least {config.data.validation_from} training classes, at "
        "least two of them with several images"
    )
    if stage.classes == "all":
        advice = f"set `classes` of stage `{stage.name}` to `fit`"
    elif config.data.validation == "none":
        advice = "set `data.validation` to `classes`"
    raise UsageError(
        f"Phase `{watches[0]}` of stage `{stage.name}` follows a validation "
        "metric, but the stage has no validation classes. Remove `plateau` "
        f"and `stop_patience`, or {advice}."
    )


def check_arguments(
    config: RunConfig, num_classes: int, groups: list[int] | None = None
) -> None:
    """Raises if the loss, its head or an optimizer refuses its arguments.

    TensorFlow builds them in a graph, where nothing runs and no array is made:
    a comparison checks its runs in a process that must leave the memory of
    the GPUs to their trainings.

    Args:
        config: The configuration.
        num_classes: Number of classes in training.
        groups: The group of each class, see `build_loss`. Defaults to `None`.

    Raises:
        UsageError: Names the setting.
    """
    head, model = loss_head(config.loss), config.model
    with tf.Graph().as_default(), _naming_settings():
        build_loss(config.loss, groups)
        if config.distillation is not None:
            build_distillation(config.distillation, model.prefixes)
        # The blocks of a decay are known once there is a network.
        whole = config.optimizer.changed(backbone={"layer_decay": 1.0})
        build_optimizer(whole, epochs=1, steps_per_epoch=1, head=head)
        options = head_options(model, config.loss)
        head.check(options, model.policy)
        orders = options.moments.orders if options.moments else 1
        embedding = unused_input((orders * model.dim,))
        label = label_input()
        with _refusing("model.proxies"):
            output = connect_head(head, embedding, label, num_classes, options)
            trainer = keras.Model([embedding, label], output)
            # The regularizers compute.
            trainer.losses  # noqa: B018
        if _heats(config) and not any(
            isinstance(layer, ScaledLogits)
            for layer in trainer._flatten_layers()
        ):
            names = ", ".join(f"`{term.name}`" for term in config.loss)
            raise UsageError(
                "`heat` changes the scale of logits, of which the loss must "
                f"take some. Received: {names}. Choose another loss, such as "
                "`norm_softmax`, or remove `heat`."
            )
        with _refusing("loss"):
            rows = config.sampling.rows_together
            trainer_loss(trainer, config, groups)(
                *(
                    ops.zeros((rows, *x.shape[1:]), x.dtype)
                    for x in (label, output)
                )
            )


@contextlib.contextmanager
def _naming_settings() -> Iterator[None]:
    """Names the setting where a head names its own argument."""
    try:
        yield
    except UsageError as error:
        said = str(error)
        for argument, setting in _SETTINGS.items():
            if said.startswith(argument):
                said = setting + said.removeprefix(argument)
        raise UsageError(said) from error


@contextlib.contextmanager
def _refusing(setting: str) -> Iterator[None]:
    """Names the setting in what Keras, or a loss of others, raises."""
    try:
        yield
    except UsageError:
        raise
    except (NotImplementedError, TypeError, ValueError) as error:
        reason = str(error) or "it is not implemented"
        raise UsageError(f"`{setting}`: {reason}") from error


def warn_about_late_starts(config: RunConfig, index: int, steps: int) -> None:
    """Warns of what would begin after the training of a stage has ended.

    Args:
        config: The configuration with the lengths of the stage.
        index: Number of the stage.
        steps: Number of its steps.
    """
    stage = config.stages[index]
    for phase in stage.phases:
        if phase.heat is None or phase.epochs is None:
            continue
        first = phase.heat.epoch or phase.heat.every or 0
        if first >= phase.epochs:
            logger.warning(
                "Nothing is heated: phase `%s` of stage `%s` heats from "
                "epoch %d on, but trains for %d. Train longer, or change "
                "its `heat`.",
                phase.name,
                stage.name,
                first,
                phase.epochs,
            )
    epochs = sum(phase.epochs or 0 for phase in stage.phases)
    late = [
        (f"loss.{place}.memory.warm_up_steps", term.memory.warm_up_steps, steps)
        for place, term in enumerate(config.loss)
        if term.memory is not None and term.memory.warm_up_steps >= steps
    ] + [
        (f"model.proxies.sample_aware.{key}", first, epochs)
        for key, first in config.model.proxies.sample_aware.items()
        if key in ("memory_epoch", "filter_epoch") and first >= epochs
    ]
    for key, first, end in late:
        logger.warning(
            "`%s` is %d, but stage `%s` ends after %d: what would begin then "
            "never does. Train longer, or set it lower.",
            key,
            first,
            stage.name,
            end,
        )


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
