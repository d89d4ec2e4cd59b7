"""Finds the miners in the files of this folder, and returns them by name."""

import inspect
from typing import Any

import keras

from keras_dml.arguments import class_at, defined_in, made
from keras_dml.errors import UsageError
from keras_dml.miners.base import Miner
from keras_dml.naming import nearest, shown

# By the name of their file.
MINERS: dict[str, type[Miner]] = {
    key: value
    for key, _, value in defined_in(__package__)
    if inspect.isclass(value)
    and issubclass(value, Miner)
    and not inspect.isabstract(value)
}
_BY_NAME = {cls.__name__: cls for cls in MINERS.values()} | MINERS


def get(identifier) -> Miner | None:
    """Makes a miner from its name or its config.

    Args:
        identifier: The key of a miner, such as `"batch_hard"`; its class name,
            such as `"BatchHard"`; the path of any other subclass of
            `keras_dml.miners.Miner`, such as `"module.Class"`; a dict of
            `name`, which is one of these, and the arguments, such as
            `{"name": "pair_margin", "negative_margin": 0.6}`; a config, as
            `serialize` returns it, or of `class_name` and optionally `config`;
            or a miner or `None`, which the function returns unchanged.

    Returns:
        The miner.

    Raises:
        UsageError: If the name or an argument is unknown.

    Example:

    >>> get({"name": "pair_margin", "negative_margin": 0.6}).negative_margin
    0.6
    """
    if identifier is None or isinstance(identifier, Miner):
        return identifier
    if isinstance(identifier, dict) and "class_name" in identifier:
        return deserialize(identifier)
    arguments: dict[str, Any] = {}
    if isinstance(identifier, dict):
        arguments = dict(identifier)
        identifier = arguments.pop("name", None)
    return _made(identifier, arguments)


def serialize(miner: Miner) -> dict[str, Any]:
    """Returns the class and the config of a miner as a JSON-able dict.

    Example:

    >>> serialize(get("pair_margin"))["config"]["positive_margin"]
    0.2
    """
    return keras.saving.serialize_keras_object(miner)


def deserialize(config: dict[str, Any]) -> Miner:
    """Makes a miner from its config.

    Args:
        config: The result of `serialize`; or a dict of `class_name`, which is
            any name that `get` takes, and optionally `config`.

    Raises:
        UsageError: If the name or an argument is unknown.

    Example:

    >>> deserialize(serialize(get("triplet_margin"))).margin
    0.2
    """
    if "registered_name" in config:
        return keras.saving.deserialize_keras_object(config)
    return _made(config["class_name"], config.get("config") or {})


def _made(name, arguments: dict[str, Any]) -> Miner:
    try:
        return made(_class_of(name), "miner", name, arguments)
    except TypeError as error:
        raise UsageError(f"The miner {name!r}: {error}") from error


def _class_of(name) -> type[Miner]:
    close = ""
    if isinstance(name, str):
        if name in _BY_NAME:
            return _BY_NAME[name]
        if "." in name:
            return class_at(name, Miner, "miner", "keras_dml.miners.BatchHard")
        close = f" Did you mean {nearest(name, MINERS)}?"
    raise UsageError(
        f"`miner` must name a miner, as a string or as the `name` of a dict."
        f"{close} There are: {', '.join(MINERS)}. Received: {shown(name)}"
    )
