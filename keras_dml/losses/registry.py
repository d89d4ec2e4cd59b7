"""Finds the losses in the files of this folder, and returns them by name."""

import inspect
from typing import Any

import keras

from keras_dml import former
from keras_dml.arguments import class_at, defined_in, made
from keras_dml.checks import require
from keras_dml.errors import UsageError
from keras_dml.losses.base import Loss
from keras_dml.losses.distillation import DistillationLoss
from keras_dml.naming import nearest, shown


def _read_folder() -> tuple[
    dict[str, type[Loss]],
    dict[str, type[DistillationLoss]],
    dict[str, type[Loss]],
    dict[str, Any],
]:
    """Returns losses by file; everything public."""
    found, transfers, others, public = {}, {}, {}, {}
    for key, name, value in defined_in(__package__):
        if inspect.isclass(value) and issubclass(value, Loss):
            public[name] = value
            if inspect.isabstract(value):
                continue
            if issubclass(value, DistillationLoss):
                transfers[key] = value
            elif value.takes:
                found[key] = value
            elif value is not Loss:
                others[key] = value
        elif name.endswith("_loss"):
            public[name] = value
    return found, transfers, others, public


# Classes by key, of losses on labels, of those on the embeddings of a teacher,
# and of those that take other losses; everything that `keras_dml.losses`
# exposes, by Python name.
LOSSES, DISTILLATIONS, _WITH_LOSSES, PUBLIC = _read_folder()
_BY_NAME = {
    name: one
    for name, one in {
        **PUBLIC,
        **LOSSES,
        **DISTILLATIONS,
        **_WITH_LOSSES,
    }.items()
    if inspect.isclass(one)
}


def get(identifier, **arguments) -> keras.losses.Loss:
    """Makes a loss from its name, its class or its config.

    Args:
        identifier: The name of the file of a loss, such as `"arcface"`; its
            class name, such as `"ArcFace"`; the path of any other subclass of
            `keras.losses.Loss`, such as `"keras.losses.Circle"`; a class; a
            dict of `name`, which is one of these, and the arguments, such as
            `{"name": "arcface", "margin": 0.3}`; a config, as `serialize`
            returns it; or a loss, which the function returns unchanged.
        **arguments: Arguments of the loss, for a name or a class.

    Returns:
        The loss.

    Raises:
        UsageError: If the name or an argument is unknown.

    Example:

    >>> get("arcface", margin=0.3).margin
    0.3
    """
    if isinstance(identifier, (dict, keras.losses.Loss)):
        if arguments:
            raise UsageError(
                "`identifier` must be a name or a class where arguments of "
                f"the loss follow. Received: identifier={identifier!r}, "
                f"{', '.join(arguments)}"
            )
        is_config = isinstance(identifier, dict)
        return deserialize(identifier) if is_config else identifier
    return made(_class_of(identifier), "loss", identifier, arguments)


def serialize(loss: keras.losses.Loss) -> dict[str, Any]:
    """Returns the class and the config of a loss as a JSON-able dict.

    Example:

    >>> serialize(get("n_pair"))["config"]["l2"]
    0.02
    """
    return keras.losses.serialize(loss)


def deserialize(config: dict[str, Any]) -> keras.losses.Loss:
    """Makes a loss from its config.

    Args:
        config: The result of `serialize`; a dict of `class_name`, which is any
            name that `get` takes, and optionally `config`; or a dict of
            `name` and the arguments.

    Raises:
        UsageError: If the name or an argument is unknown.

    Example:

    >>> deserialize({"class_name": "Margin", "config": {"nu": 0.1}}).nu
    0.1
    """
    if "registered_name" in config:
        return keras.losses.deserialize(config)
    if "class_name" in config:
        return get(config["class_name"], **(config.get("config") or {}))
    if "name" in config:
        arguments = {key: config[key] for key in config if key != "name"}
        return get(config["name"], **arguments)
    raise UsageError(
        "A configuration of a loss must have a `class_name` or a `name`. "
        f"Received: {shown(config)}"
    )


def knows(identifier) -> bool:
    """Returns whether a name, or a dict of one, is of a loss of this package.

    Example:

    >>> knows("arcface"), knows("ArcFace"), knows("mse")
    (True, True, False)
    """
    name = identifier
    if isinstance(name, dict):
        name = name.get("class_name", name.get("name"))
    return isinstance(name, str) and former.LOSSES.get(name, name) in _BY_NAME


def input_of(identifier, takes: str | None = None) -> str | None:
    """Returns the attribute `takes` of a loss: the kind of its `y_pred`.

    Args:
        identifier: A name or a class, as for `get`.
        takes: The kind of `y_pred` of a loss of another package, which has no
            such attribute. Defaults to `None`.

    Returns:
        The name of one of `keras_dml.models.HEADS`; `None` if neither the
        loss nor `takes` names one.

    Raises:
        UsageError: If the name is unknown, or `takes` contradicts the loss.

    Example:

    >>> input_of("proxy_anchor")
    'similarities'
    """
    known = getattr(_class_of(identifier), "takes", None)
    if known is not None and takes not in (None, known):
        raise UsageError(
            f"The loss {identifier!r} takes {known}, whatever `takes` says. "
            f"Received: takes={takes!r}. Leave it out."
        )
    return known or takes


def _class_of(name) -> type[keras.losses.Loss]:
    if inspect.isclass(name):
        return name
    require(
        isinstance(name, str),
        "identifier",
        "a name, a class, a configuration or a loss",
        name,
    )
    if knows(name):
        return _BY_NAME[former.LOSSES.get(name, name)]
    if "." not in name:
        raise UsageError(
            f"The loss {shown(name)} is unknown. Did you mean "
            f"{nearest(name, LOSSES)}? `keras_dml.losses.LOSSES` holds all."
        )
    return class_at(name, keras.losses.Loss, "loss", "keras.losses.Circle")
