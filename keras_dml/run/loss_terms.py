"""Builds the loss of a run, the layers in front of it, and what heats it."""

from collections.abc import Sequence
from typing import Any

import keras

from keras_dml import callbacks, losses
from keras_dml.config import (
    DistillationConfig,
    HeatConfig,
    LossConfig,
    RunConfig,
)
from keras_dml.errors import UsageError
from keras_dml.layers import CrossBatchMemory, Distillation, HighOrderMoments
from keras_dml.models.head import Head
from keras_dml.models.heads import get_head
from keras_dml.models.prefixes import widths_of


def trainer_loss(
    trainer: keras.Model, config: RunConfig, groups: list[int] | None = None
) -> keras.losses.Loss:
    """Builds the loss of what a trainer gives, of prefixes and of a teacher.

    Args:
        trainer: Result of `build_trainer`.
        config: The configuration.
        groups: The group of each class, see `build_loss`. Defaults to `None`.
    """
    loss, model = build_loss(config.loss, groups), config.model
    if model.prefixes:
        weights = model.matryoshka_weights or None
        loss = losses.Matryoshka(loss, widths_of(trainer), weights)
    if any(isinstance(layer, Distillation) for layer in trainer.layers):
        assert config.distillation is not None
        loss = losses.WithDistillation(loss, config.distillation.label_weight)
    return loss


def build_loss(
    terms: list[LossConfig], groups: list[int] | None = None
) -> keras.losses.Loss:
    """Builds the loss of an embedding: a term, or a weighted sum of several.

    Args:
        terms: The section `loss`.
        groups: The group of each class, for losses that need it, see
            `needs_groups`. Defaults to `None`.
    """
    built = [
        _build_term(number, term, groups) for number, term in enumerate(terms)
    ]
    weights = [term.weight for term in terms]
    whole = built[0]
    if terms[0].memory is not None:
        whole = losses.WithMemory(whole)
    elif terms[0].moments is not None:
        whole = losses.OnMoments(whole, terms[0].moments.orders)
    elif weights != [1.0]:
        whole = losses.WeightedSum(built, weights)
    if needs_step(terms):
        return losses.AtStep(whole, reduction=whole.reduction)
    if not any(term.sampled for term in terms):
        return whole
    try:
        return losses.OnSampledClasses(whole)
    except ValueError as error:
        sampled = [term.sampled for term in terms].index(True)
        raise UsageError(
            f"`loss.{sampled}.sampled`, which `model.proxies.sample` sets: "
            f"{error}"
        ) from error


def needs_groups(terms: list[LossConfig]) -> bool:
    """Returns whether a term takes the groups of the classes from the data."""
    return any(
        term.group_weight is not None or _takes_groups(term) for term in terms
    )


def needs_step(terms: list[LossConfig]) -> bool:
    """Returns whether a term may depend on the training step.

    So do a miner that draws and a `PairLoss` of the user's own, which may read
    `pairs.step`. `Margin` has the step of its head.
    """
    if loss_head(terms).name != "embeddings":
        return False
    built = [_build_plain(*numbered) for numbered in enumerate(terms)]
    return any(_draws(loss) or _may_read_step(loss) for loss in built)


def _draws(loss: keras.losses.Loss) -> bool:
    miner = getattr(loss, "miner", None)
    return miner is not None and miner.draws


def _may_read_step(loss: keras.losses.Loss) -> bool:
    ours = losses.LOSSES.values()
    return isinstance(loss, losses.PairLoss) and type(loss) not in ours


def loss_head(terms: list[LossConfig]) -> Head:
    """Returns the head that all terms of the loss need.

    Raises:
        UsageError: If the terms do not take the same input.
    """
    heads = [_head_of(number, term) for number, term in enumerate(terms)]
    if len(set(heads)) > 1:
        listed = ", ".join(
            f"{term.name!r} {head.name}"
            for term, head in zip(terms, heads, strict=True)
        )
        raise UsageError(
            "The terms of `loss` must take the same input. Received: "
            f"{listed}. Choose losses of one kind."
        )
    return heads[0]


def build_memory(terms: list[LossConfig]) -> CrossBatchMemory | None:
    """Builds the memory that the loss needs, or returns `None`.

    Raises:
        UsageError: If the loss has several terms, or cannot use a memory.
    """
    memory = _of_only_term(terms, "memory")
    if memory is None:
        return None
    try:
        return CrossBatchMemory(
            _build_plain(0, terms[0]), **memory.model_dump(), name="memory"
        )
    except ValueError as error:
        raise UsageError(f"`loss.0.memory`: {error}") from error


def build_moments(terms: list[LossConfig]) -> HighOrderMoments | None:
    """Builds the layer of moments that the loss needs, or returns `None`.

    Raises:
        UsageError: If the loss has several terms.
    """
    moments = _of_only_term(terms, "moments")
    if moments is None:
        return None
    return HighOrderMoments(**moments.model_dump(), name="moments")


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


def _of_only_term(terms: list[LossConfig], key: str) -> Any:
    """Returns a setting of a loss that must then have no other terms."""
    if all(getattr(term, key) is None for term in terms):
        return None
    if len(terms) > 1 or terms[0].weight != 1.0:
        raise UsageError(
            f"`{key}` needs a `loss` of one term of weight 1. Received: "
            f"{len(terms)} terms"
        )
    return getattr(terms[0], key)


def _head_of(number: int, term: LossConfig) -> Head:
    try:
        return get_head(losses.input_of(term.name, term.takes))
    except UsageError as error:
        key = "name" if term.takes is None else "takes"
        raise UsageError(f"`loss.{number}.{key}`: {error}") from error


def _takes_groups(term: LossConfig) -> bool:
    known = losses.LOSSES.get(term.name)
    return getattr(known, "takes_groups", False) and not term.arguments.get(
        "groups"
    )


def _build_term(
    number: int, term: LossConfig, groups: list[int] | None
) -> keras.losses.Loss:
    """Builds a term, with one on groups if the term says so."""
    loss = _build_plain(number, term, groups)
    if term.group_weight is None:
        return loss
    setting = f"`loss.{number}.group_weight`"
    if term.sampled:
        raise UsageError(
            f"{setting} and `model.proxies.sample` exclude each other: a "
            "sample lacks classes of each group. Received: "
            f"group_weight={term.group_weight}. Leave one out."
        )
    try:
        return losses.OnGroups(loss, groups, term.group_weight)
    except ValueError as error:
        raise UsageError(f"{setting} of {term.name!r}: {error}") from error


def _build_plain(
    number: int, term: LossConfig, groups: list[int] | None = None
) -> keras.losses.Loss:
    arguments = dict(term.arguments)
    if _takes_groups(term):
        arguments["groups"] = groups
    try:
        return losses.get(term.name, **arguments)
    except (TypeError, ValueError) as error:
        said = str(error)
        key = "arguments" if term.arguments else "name"
        named = "" if repr(term.name) in said else f" of {term.name!r}"
        raise UsageError(f"`loss.{number}.{key}`{named}: {said}") from error


def heat_up(heat: HeatConfig) -> keras.callbacks.Callback:
    """Builds the callback that lowers the scale of the logits.

    Args:
        heat: The section `heat` of a phase.
    """
    if heat.every is not None:
        return callbacks.GradualHeatUp(
            every=heat.every,
            scale_factor=heat.scale_factor,
            learning_rate_factor=heat.lr_factor,
        )
    return callbacks.HeatUp(
        epoch=heat.epoch, scale=heat.scale, learning_rate_factor=heat.lr_factor
    )
