"""Optimizers and losses from their sections of the configuration."""

import keras

from keras_dml import losses
from keras_dml.config import GroupConfig, LossConfig, OptimizerConfig
from keras_dml.errors import UsageError
from keras_dml.optimizers import PerVariable, TorchAdam

_OPTIMIZERS = {
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "rmsprop": keras.optimizers.RMSprop,
    "sgd": keras.optimizers.SGD,
    "torch_adam": TorchAdam,
}

HEAD_RULE = "head/.*"
PROXIES_RULE = "(proxies|logits|boundaries)/.*"


def build_loss(terms: list[LossConfig]) -> keras.losses.Loss:
    """The loss of a run: one term, or a weighted sum of several."""
    built = [_build_term(term) for term in terms]
    weights = [term.weight for term in terms]
    if weights == [1.0]:
        return built[0]
    return losses.WeightedSum(built, weights)


def build_optimizer(
    config: OptimizerConfig,
    *,
    epochs: int,
    steps_per_epoch: int,
    has_proxies: bool,
    learning_rate_factor: float = 1.0,
) -> PerVariable:
    """One optimizer each for backbone, head and proxies.

    Args:
        config: The settings of the three groups.
        epochs: Length of the phase, which a cosine schedule spans.
        steps_per_epoch: Number of batches in an epoch.
        has_proxies: Whether the trainer has proxies or boundaries of classes.
        learning_rate_factor: Multiplies every rate. Defaults to `1.0`.
    """

    def build(name: str, group: GroupConfig) -> keras.optimizers.Optimizer:
        return _build_group(
            name, group, epochs, steps_per_epoch, learning_rate_factor
        )

    rules = {HEAD_RULE: build("head", config.head)}
    if has_proxies:
        rules[PROXIES_RULE] = build("proxies", config.proxies)
    return PerVariable(
        build("backbone", config.backbone), rules, name="per_variable"
    )


def _build_term(term: LossConfig) -> keras.losses.Loss:
    try:
        return losses.get(term.name, **term.arguments)
    except (TypeError, ValueError) as error:
        raise UsageError(f"`loss` {term.name!r}: {error}") from error


def _build_group(
    name: str,
    group: GroupConfig,
    epochs: int,
    steps_per_epoch: int,
    learning_rate_factor: float,
) -> keras.optimizers.Optimizer:
    arguments = dict(group.arguments)
    if group.clip_value is not None:
        arguments["clipvalue"] = group.clip_value
    if group.weight_decay:
        arguments["weight_decay"] = group.weight_decay
    try:
        return _OPTIMIZERS[group.name](
            learning_rate=_schedule(
                group, epochs, steps_per_epoch, learning_rate_factor
            ),
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
    """A number where callbacks may change it, else a function of the step."""
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
