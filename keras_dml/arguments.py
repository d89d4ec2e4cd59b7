"""The arguments of a class, their values in an object, and classes by path.

A loss or layer stores each argument in an attribute of the same name, so that
its config follows from the signature of its constructor.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from typing import Any

import keras

from keras_dml.errors import UsageError, reason_of
from keras_dml.naming import nearest, shown


def arguments_of(cls: type, base: type = object) -> list[str]:
    """Returns the names that a constructor takes.

    If the constructor passes `**kwargs` on, they include the names that the
    constructor of its base class takes.

    Args:
        cls: Class.
        base: Class whose arguments, and those of its bases, are left out.
            Defaults to `object`.

    Example:

    >>> arguments_of(keras_dml.losses.CosFace)
    ['margin', 'scale', 'reduction', 'name', 'dtype']
    """
    names: list[str] = []
    for one in cls.__mro__[: cls.__mro__.index(base)]:
        if "__init__" not in vars(one):
            continue
        parameters = dict(inspect.signature(vars(one)["__init__"]).parameters)
        parameters.pop("self")
        others = parameters.pop("kwargs", None)
        names += [name for name in parameters if name not in names]
        if others is None:
            break
    return names


def own_config(instance: object, *parts: object) -> dict[str, Any]:
    """Returns the arguments of an object, except those of Keras' base class.

    Args:
        instance: Layer or regularizer that stores each argument in an
            attribute of its name.
        *parts: Objects that hold the arguments that it only passes on.

    Raises:
        UsageError: If an argument is stored in none of them.

    Example:

    >>> own_config(keras_dml.regularizers.LpNorm(0.1))
    {'strength': 0.1, 'p': 2.0, 'power': 1.0}
    """
    base = next(
        cls
        for cls in type(instance).__mro__
        if cls.__module__.startswith("keras.")
    )
    values = {}
    for name in arguments_of(type(instance), base):
        holders = [one for one in (instance, *parts) if hasattr(one, name)]
        if not holders:
            raise UsageError(
                f"`{type(instance).__name__}` must store its argument "
                f"`{name}`, for `get_config` reads it. Set `self.{name}` in "
                "the constructor."
            )
        values[name] = getattr(holders[0], name)
    return keras.saving.serialize_keras_object(values)


def made(
    cls: type, kind: str, identifier: object, arguments: Mapping[str, Any]
) -> Any:
    """Makes an object, or names the argument that its class does not take.

    Args:
        cls: Its class.
        kind: What the class is, for messages.
        identifier: What the caller named the class by, for messages.
        arguments: The arguments of its constructor.

    Raises:
        UsageError: If an argument is unknown.
    """
    known = arguments_of(cls)
    for argument, value in arguments.items():
        if argument not in known:
            close = f" Did you mean {nearest(argument, known)}?" * bool(known)
            raise UsageError(
                f"The {kind} {identifier!r} has no argument {argument!r}."
                f"{close} It takes: {', '.join(known) or 'none'}. Received: "
                f"{argument}={shown(value)}"
            )
    return cls(**arguments)


def defined_in(package: str) -> Iterator[tuple[str, str, Any]]:
    """Yields what the modules of a package define: module, name and object.

    Args:
        package: Its name, such as `"keras_dml.losses"`.

    Example:

    >>> ("circle", "circle_loss") in {
    ...     (module, name) for module, name, _ in defined_in("keras_dml.losses")
    ... }
    True
    """
    for _, key, _ in pkgutil.iter_modules(
        importlib.import_module(package).__path__
    ):
        module = importlib.import_module(f"{package}.{key}")
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) == module.__name__:
                yield key, name, value


def class_at(path: str, base: type, kind: str, example: str) -> Any:
    """Imports the class that a recipe names by its path.

    Args:
        path: Module and class, with dots.
        base: Class that it must be a subclass of.
        kind: What the class is, for messages.
        example: Path of another such class, for messages.

    Raises:
        UsageError: If there is no such class.

    Example:

    >>> from keras_dml.losses import Circle, Loss
    >>> class_at("keras_dml.losses.Circle", Loss, "loss", "") is Circle
    True
    """
    module, _, attribute = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    # Names with dots in odd places are of the last two types.
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UsageError(
            f"The {kind} {shown(path)} cannot be imported: {reason_of(error)}. "
            f"Give the path of a class, such as `{example}`; a file in the "
            "current folder is found with PYTHONPATH=."
        ) from error
    if not (inspect.isclass(found) and issubclass(found, base)):
        raise UsageError(
            f"{path!r} must be the path of a {kind}, such as `{example}`. "
            f"Received: {found!r}"
        )
    return found
