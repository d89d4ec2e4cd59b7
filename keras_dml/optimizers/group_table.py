"""A table of the optimizers and their variables."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import keras

from keras_dml.checks import require
from keras_dml.optimizers.learning_rate import follows_schedule, rate_of
from keras_dml.optimizers.per_variable import PerVariable


class OptimizerGroup(NamedTuple):
    """A row of `group_table`.

    Attributes:
        group: Name of the optimizer.
        rule: The rule that matches its variables, `""` for the default.
        variables: Number of variables.
        parameters: Number of entries of these variables.
        optimizer: Class of the optimizer.
        learning_rate: The current learning rate.
        schedule: `"constant"`, or the class of the schedule, with the rate
            that its warm-up reaches if it has a warm-up.
        clip: Kind and limit of gradient clipping, or `"none"`.
        decay: Kind and factor of weight decay, or `"none"`.
    """

    group: str
    rule: str
    variables: int
    parameters: int
    optimizer: str
    learning_rate: float
    schedule: str
    clip: str
    decay: str


def group_table(
    optimizer: keras.optimizers.Optimizer, variables: Iterable[Any]
) -> list[OptimizerGroup]:
    """Returns one row for each optimizer that has variables.

    Print and save the table at the start of a run: it shows every learning
    rate, clipping and decay.

    Args:
        optimizer: `PerVariable` or a Keras optimizer of one group, built or
            not; either may be inside a `LossScaleOptimizer`.
        variables: The trainable variables of the model.

    Returns:
        List of `OptimizerGroup`, named tuples of strings and numbers. The
        rules come first, in their order, and the default last.

    Raises:
        ValueError: If two rules match the same variable, or `optimizer` is
            another one that holds several.

    Example:

    >>> weights = keras.layers.Dense(2)
    >>> weights.build((None, 3))
    >>> rows = group_table(keras.optimizers.SGD(0.1), weights.variables)
    >>> rows[0].parameters, rows[0].optimizer
    (8, 'SGD')
    """
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return group_table(optimizer.inner_optimizer, variables)
    if not isinstance(optimizer, PerVariable):
        require(
            not hasattr(optimizer, "optimizers"),
            "optimizer",
            "`PerVariable` or an optimizer that holds no others",
            optimizer,
            "`PerVariable` takes the same regular expressions.",
        )
        return [_row("", optimizer, list(variables))]
    groups: dict[str, list[Any]] = {}
    for variable in variables:
        rule = optimizer.rule_of(variable.path) or ""
        groups.setdefault(rule, []).append(variable)
    return [
        _row(rule, owner, groups[rule])
        for rule, owner in {**optimizer.rules, "": optimizer.default}.items()
        if rule in groups
    ]


def _row(rule, optimizer, variables):
    return OptimizerGroup(
        group=optimizer.name,
        rule=rule,
        variables=len(variables),
        parameters=sum(math.prod(v.shape) for v in variables),
        optimizer=type(optimizer).__name__,
        learning_rate=rate_of(optimizer),
        schedule=_schedule(optimizer),
        clip=_clip(optimizer),
        decay=_decay(optimizer),
    )


def _schedule(optimizer):
    if not follows_schedule(optimizer):
        return "constant"
    return _described(optimizer.get_config()["learning_rate"])


def _described(schedule):
    name, config = schedule["class_name"], schedule["config"]
    if not isinstance(config, dict):
        # A function, by its name.
        return f"{name} {config}"
    followed = config.get("learning_rate")
    if isinstance(followed, dict):
        return f"{_described(followed)}, then {name}"
    if config.get("warmup_target") is not None:
        return f"{name} by way of {config['warmup_target']:g}"
    if "end_learning_rate" in config:
        return f"{name} to {config['end_learning_rate']:g}"
    return name


def _clip(optimizer):
    names = {
        "clipvalue": "value",
        "clipnorm": "norm",
        "global_clipnorm": "global norm",
    }
    for attribute, name in names.items():
        limit = getattr(optimizer, attribute)
        if limit is not None:
            return f"{name} {limit:g}"
    return "none"


def _decay(optimizer):
    if getattr(optimizer, "l2", 0.0):
        return f"coupled {optimizer.l2:g}"
    if optimizer.weight_decay:
        return f"decoupled {optimizer.weight_decay:g}"
    return "none"
