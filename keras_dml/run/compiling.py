"""Builds the loss and the optimizer of a run from its configuration."""

from collections.abc import Sequence

import keras

from keras_dml import losses
from keras_dml.config import (
    DistillationConfig,
    GroupConfig,
    LossConfig,
    OptimizerConfig,
    PhaseConfig,
    RunConfig,
)
from keras_dml.errors import UsageError
from keras_dml.layers import CrossBatchMemory, Distillation, InChunks
from keras_dml.models import freezing
from keras_dml.models.heads import LAYERS, Head, get_head
from keras_dml.models.prefixes import widths_of
from keras_dml.optimizers import (
    DecayToZero,
    PerVariable,
    RowLazyAdam,
    TorchAdam,
    layer_decay_rules,
)

_OPTIMIZERS = {
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "rmsprop": keras.optimizers.RMSprop,
    "row_lazy_adam": RowLazyAdam,
    "sgd": keras.optimizers.SGD,
    "torch_adam": TorchAdam,
}

HEAD_RULE = "head/.*"
PROXIES_RULE = f"({'|'.join(LAYERS)})/.*"
OTHER_PATHS = tuple(f"{name}/" for name in ("head", *LAYERS))


def trainer_loss(trainer: keras.Model, config: RunConfig) -> keras.losses.Loss:
    """Builds the loss of what a trainer gives, of prefixes and of a teacher.

    Args:
        trainer: Result of `build_trainer`.
        config: The configuration.
    """
    loss, model = build_loss(config.loss), config.model
    if model.prefixes:
        weights = model.matryoshka_weights or None
        loss = losses.Matryoshka(loss, widths_of(trainer), weights)
    if any(isinstance(layer, Distillation) for layer in trainer.layers):
        assert config.distillation is not None
        loss = losses.WithDistillation(loss, config.distillation.label_weight)
    return loss


def build_distillation(
    config: DistillationConfig, prefixes: Sequence[int]
) -> Distillation:
    """Builds the layer that compares with the embeddings of a teacher.

    Args:
        config: The section `distillation` of a configuration.
        prefixes: Sizes of the prefixes of the embedding.

    Raises:
        UsageError: If the loss does not take its arguments.
    """
    cls = losses.DISTILLATIONS[config.loss]
    try:
        loss = losses.get(cls, **config.arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(f"`distillation.arguments`: {error}") from error
    return Distillation(loss, config.weight, prefixes, name="distillation")


def build_loss(terms: list[LossConfig]) -> keras.losses.Loss:
    """Builds the loss of an embedding: a term, or a weighted sum of several."""
    built = [_build_term(term) for term in terms]
    weights = [term.weight for term in terms]
    whole = built[0]
    if terms[0].memory is not None:
        whole = losses.WithMemory(whole)
    elif weights != [1.0]:
        whole = losses.WeightedSum(built, weights)
    if draws_pairs(terms):
        return losses.AtStep(whole)
    if not any(term.sampled for term in terms):
        return whole
    try:
        return losses.OnSampledClasses(whole)
    except ValueError as error:
        raise UsageError(f"`model.proxies.sample`: {error}") from error


def draws_pairs(terms: list[LossConfig]) -> bool:
    """Returns whether a miner draws pairs, which the step shall seed.

    `Margin` has the step of its head.
    """
    if loss_head(terms).name != "embeddings":
        return False
    miners = (getattr(_build_term(term), "miner", None) for term in terms)
    return any(miner is not None and miner.draws for miner in miners)


def loss_head(terms: list[LossConfig]) -> Head:
    """Returns the head that all terms of the loss need.

    Raises:
        UsageError: If the terms do not take the same input.
    """
    heads = {term.name: _head_of(term) for term in terms}
    if len(set(heads.values())) > 1:
        listed = ", ".join(
            f"{name!r} {one.name}" for name, one in heads.items()
        )
        raise UsageError(
            "The terms of `loss` must take the same input. Received: "
            f"{listed}. Choose losses of one kind."
        )
    return next(iter(heads.values()))


def build_memory(terms: list[LossConfig]) -> CrossBatchMemory | None:
    """Builds the memory that the loss needs, or returns `None`.

    Raises:
        UsageError: If the loss has several terms, or cannot use a memory.
    """
    if all(term.memory is None for term in terms):
        return None
    if len(terms) > 1 or terms[0].weight != 1.0:
        raise UsageError(
            "`memory` needs a `loss` of one term of weight 1. Received: "
            f"{len(terms)} terms"
        )
    memory = terms[0].memory
    assert memory is not None
    try:
        return CrossBatchMemory(
            _build_term(terms[0]), **memory.model_dump(), name="memory"
        )
    except ValueError as error:
        raise UsageError(f"`loss.0.memory`: {error}") from error


def build_optimizer(
    config: OptimizerConfig,
    *,
    epochs: int,
    steps_per_epoch: int,
    head: Head,
    learning_rate_factor: float = 1.0,
    backbone: keras.layers.Layer | None = None,
    tail_epochs: int = 0,
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
            `layer_decay` needs it. Defaults to `None`.
        tail_epochs: Number of epochs in which every rate falls to zero once
            `EarlyStopping` says so. Defaults to `0`, none.
    """

    def build(
        name: str, group: GroupConfig, factor: float = 1.0
    ) -> keras.optimizers.Optimizer:
        return _build_group(
            name,
            group,
            epochs,
            steps_per_epoch,
            learning_rate_factor * factor,
            tail_epochs,
        )

    rules = {HEAD_RULE: build("head", config.head)}
    if head.has_variables:
        rules[PROXIES_RULE] = build("proxies", config.proxies)
    decay = config.backbone.layer_decay
    if decay < 1:
        if backbone is None:
            raise ValueError("`layer_decay` needs `backbone`. Received: None")
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
) -> None:
    """Freezes what a phase keeps, and compiles the trainer for it.

    A trainer on features has no backbone to freeze.

    Args:
        trainer: Result of `build_trainer`.
        phase: The phase.
        config: The settled configuration.
        epochs: Length of the phase, which a cosine schedule spans.
        steps_per_epoch: Number of batches in an epoch.
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
            backbone=(
                backbone.layer if isinstance(backbone, InChunks) else backbone
            ),
        ),
        loss=trainer_loss(trainer, config),
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


def _head_of(term: LossConfig) -> Head:
    return get_head(losses.input_of(term.name, term.takes))


def _build_term(term: LossConfig) -> keras.losses.Loss:
    try:
        return losses.get(term.name, **term.arguments)
    except (TypeError, ValueError) as error:
        said = str(error)
        named = "" if repr(term.name) in said else f" {term.name!r}"
        raise UsageError(f"`loss`{named}: {said}") from error


def _build_group(
    name: str,
    group: GroupConfig,
    epochs: int,
    steps_per_epoch: int,
    learning_rate_factor: float,
    tail_epochs: int,
) -> keras.optimizers.Optimizer:
    arguments = dict(group.arguments)
    if group.clip_value is not None:
        arguments["clipvalue"] = group.clip_value
    if group.weight_decay:
        arguments["weight_decay"] = group.weight_decay
    rate = _schedule(group, epochs, steps_per_epoch, learning_rate_factor)
    if tail_epochs:
        rate = DecayToZero(rate, tail_epochs * steps_per_epoch)
    try:
        return _OPTIMIZERS[group.name](
            learning_rate=rate,
            name=name,
            **arguments,
        )
    except (TypeError, ValueError) as error:
        raise UsageError(f"`optimizer.{name}`: {error}") from error


def _schedule(
    group: GroupConfig,
    epochs: int,
    steps_per_epoch: int,
    learning_rate_factor: float,
) -> float | keras.optimizers.schedules.LearningRateSchedule:
    """Returns a number, which callbacks may change, or a schedule."""
    rate = group.lr * learning_rate_factor
    if group.schedule == "cosine":
        warmup = group.warmup_steps
        return keras.optimizers.schedules.CosineDecay(
            initial_learning_rate=rate / warmup if warmup else rate,
            decay_steps=max(1, epochs * steps_per_epoch - warmup),
            warmup_target=rate if warmup else None,
            warmup_steps=warmup,
        )
    if group.schedule == "step":
        assert group.step_epochs is not None
        return keras.optimizers.schedules.ExponentialDecay(
            rate,
            decay_steps=group.step_epochs * steps_per_epoch,
            decay_rate=group.step_factor,
            staircase=True,
        )
    if group.warmup_steps:
        return keras.optimizers.schedules.PolynomialDecay(
            rate / group.warmup_steps, group.warmup_steps, rate
        )
    return rate
