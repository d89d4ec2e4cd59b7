"""Builds the optimizer of a run from its configuration, and compiles."""

import math
from typing import TypeAlias

import keras

from keras_dml.config import (
    GroupConfig,
    OptimizerConfig,
    PhaseConfig,
    RunConfig,
)
from keras_dml.errors import UsageError
from keras_dml.layers import InChunks
from keras_dml.models import freezing
from keras_dml.models.head import Head
from keras_dml.models.heads import LAYERS, OF_EMBEDDINGS
from keras_dml.optimizers import (
    DecayToZero,
    Muon,
    PerVariable,
    RowLazyAdam,
    TorchAdam,
    layer_decay_rules,
)
from keras_dml.run.loss_terms import loss_head, trainer_loss

Rate: TypeAlias = float | keras.optimizers.schedules.LearningRateSchedule

_OPTIMIZERS = {
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "muon": Muon,
    "rmsprop": keras.optimizers.RMSprop,
    "row_lazy_adam": RowLazyAdam,
    "sgd": keras.optimizers.SGD,
    "torch_adam": TorchAdam,
}

# Found on validation classes of four sets of photos: docs/lab/photos.md.
NETWORK_RATE, RATE_STEPS = 3e-5, 600
RATE_OF_HEAD_ALONE = 1e-4

HEAD_RULE = f"({'|'.join(OF_EMBEDDINGS)})/.*"
PROXIES_RULE = f"({'|'.join(LAYERS)})/.*"
OTHER_PATHS = tuple(f"{name}/" for name in (*OF_EMBEDDINGS, *LAYERS))


def fine_tuning_rate(steps: int, head_alone: bool = False) -> float:
    """Returns the rate of a group whose `lr` is null.

    `3e-5 sqrt(600 / steps)`: beyond a distance from its weights a network
    forgets what classes that it never sees need, so that more steps need a
    lower rate. Measured at two lengths, the distance grew with the rate and
    the 2/3 power of the steps; the root is gentler.

    Args:
        steps: Integer, the number of steps of the phase.
        head_alone: Boolean, whether the network stays as it is. The rate is
            then 1e-4. Defaults to `False`.

    Example:

    >>> [fine_tuning_rate(steps) for steps in (150, 600, 2400)]
    [6e-05, 3e-05, 1.5e-05]
    """
    if head_alone:
        return RATE_OF_HEAD_ALONE
    return NETWORK_RATE * math.sqrt(RATE_STEPS / steps)


def has_open_rate(config: OptimizerConfig) -> bool:
    """Whether a group has a rate that follows from the steps."""
    groups = (config.backbone, config.head, config.proxies)
    return any(group.lr is None for group in groups)


def build_optimizer(
    config: OptimizerConfig,
    *,
    epochs: int,
    steps_per_epoch: int,
    head: Head,
    learning_rate_factor: float = 1.0,
    backbone: keras.layers.Layer | None = None,
    tail_epochs: int = 0,
    head_alone: bool = False,
    epochs_before: int = 0,
) -> PerVariable:
    """Builds one optimizer each for backbone, head and proxies.

    With `layer_decay`, it builds one for each block of the backbone.

    Args:
        config: The settings of the three groups.
        epochs: Length of the phase, which a cosine schedule spans.
        steps_per_epoch: Number of batches in an epoch.
        head: The head of the loss.
        learning_rate_factor: Multiplies every rate. Defaults to `1.0`.
        backbone: The backbone, with its frozen variables already frozen;
            for `layer_decay`. Defaults to `None`, none.
        tail_epochs: Number of epochs in which every rate falls to zero once
            `EarlyStopping` says so. Defaults to `0`, none.
        head_alone: Whether no variable of the backbone trains, see
            `fine_tuning_rate`. Defaults to `False`.
        epochs_before: Epochs of the stage before this phase, which a step
            schedule counts. Defaults to `0`.
    """
    usual = fine_tuning_rate(epochs * steps_per_epoch, head_alone)

    def build(
        name: str, group: GroupConfig, factor: float = 1.0
    ) -> keras.optimizers.Optimizer:
        lr = usual if group.lr is None else group.lr
        lr *= learning_rate_factor * factor
        rate = _schedule(group, lr, epochs, steps_per_epoch, epochs_before)
        if tail_epochs:
            rate = DecayToZero(rate, tail_epochs * steps_per_epoch)
        return _build_group(name, group, rate)

    rules = {HEAD_RULE: build("head", config.head)}
    if head.has_variables:
        rules[PROXIES_RULE] = build("proxies", config.proxies)
    decay = config.backbone.layer_decay
    # On features that are kept there is no network whose rates could differ.
    if decay < 1 and backbone is not None:
        for rule, (block, factor) in layer_decay_rules(
            backbone, decay, OTHER_PATHS
        ).items():
            rules[rule] = build(f"block_{block}", config.backbone, factor)
    return PerVariable(
        build("backbone", config.backbone), rules, name="per_variable"
    )


def compile_for(
    trainer: keras.Model,
    phase: PhaseConfig,
    config: RunConfig,
    epochs: int,
    steps_per_epoch: int,
    groups: list[int] | None = None,
    epochs_before: int = 0,
) -> None:
    """Freezes what a phase keeps, and compiles the trainer for it.

    A trainer on features has no backbone to freeze.

    Args:
        trainer: Result of `build_trainer`.
        phase: The phase.
        config: The settled configuration.
        epochs: Length of the phase, which a cosine schedule spans.
        steps_per_epoch: Number of batches in an epoch.
        groups: The group of each class, see `build_loss`. Defaults to `None`.
        epochs_before: See `build_optimizer`. Defaults to `0`.
    """
    backbone = backbone_of(trainer)
    if backbone is not None and phase.freeze == "weights":
        freezing.freeze_weights(backbone)
    elif backbone is not None and phase.freeze == "all":
        freezing.freeze_all(backbone)
    trainer.compile(
        optimizer=build_optimizer(
            config.optimizer,
            epochs=epochs,
            steps_per_epoch=steps_per_epoch,
            head=loss_head(config.loss),
            learning_rate_factor=phase.lr_factor,
            tail_epochs=phase.stop_tail,
            head_alone=backbone is None or phase.freeze != "none",
            epochs_before=epochs_before,
            backbone=(
                backbone.layer if isinstance(backbone, InChunks) else backbone
            ),
        ),
        loss=trainer_loss(trainer, config, groups),
    )


def backbone_of(trainer: keras.Model) -> keras.layers.Layer | None:
    """Returns the backbone of a trainer, or `None` if it takes features."""
    layers = (one for one in trainer.layers if one.name == "backbone")
    return next(layers, None)


def unfreeze(trainer: keras.Model) -> None:
    """Undoes the freezing of `compile_for`."""
    backbone = backbone_of(trainer)
    if backbone is not None:
        freezing.unfreeze(backbone)


def _build_group(
    name: str, group: GroupConfig, rate: Rate
) -> keras.optimizers.Optimizer:
    arguments = dict(group.arguments)
    if group.clip_value is not None:
        arguments["clipvalue"] = group.clip_value
    if group.weight_decay is not None:
        arguments["weight_decay"] = group.weight_decay
    try:
        return _OPTIMIZERS[group.name](
            learning_rate=rate, name=name, **arguments
        )
    except (TypeError, ValueError) as error:
        raise UsageError(f"`optimizer.{name}`: {error}") from error


def _schedule(
    group: GroupConfig,
    rate: float,
    epochs: int,
    steps_per_epoch: int,
    epochs_before: int,
) -> Rate:
    """Returns a number, which callbacks may change, or a schedule."""
    if group.schedule == "cosine":
        # A shorter training would end before its rate has fallen.
        warmup = min(group.warmup_steps, epochs * steps_per_epoch // 2)
        return keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=rate / warmup if warmup else rate,
            decay_steps=max(1, epochs * steps_per_epoch - warmup),
            warmup_target=rate if warmup else None,
            warmup_steps=warmup,
        )
    if group.schedule == "step":
        assert group.step_epochs is not None
        drops = range(0, epochs_before + epochs, group.step_epochs)
        later = [one - epochs_before for one in drops if one > epochs_before]
        first = len(drops) - len(later) - 1
        rates = [rate * group.step_factor**n for n in range(first, len(drops))]
        if not later:
            return rates[0]
        # Its rates hold up to and with the step of a boundary.
        return keras.optimizers.schedules.PiecewiseConstantDecay(
            [one * steps_per_epoch - 1 for one in later], rates
        )
    if group.warmup_steps:
        return keras.optimizers.schedules.PolynomialDecay(
            rate / group.warmup_steps, group.warmup_steps, rate
        )
    return rate
