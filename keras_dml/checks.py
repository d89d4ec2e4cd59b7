"""Checks arguments and raises errors with uniform wording.

Each check returns the value, so that a constructor checks and stores an
argument in one line. The errors read "`name` must be <what>. Received:
name=<value>. <advice>".
"""

import difflib
import math
import numbers
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.naming import LONGEST, nearest, shown

# Compute dtypes that round labels, steps and losses.
HALF = ("float16", "bfloat16")
_LARGEST = 2**63 - 1
# Training computes in float32, which holds no numbers beyond these.
_SMALLEST_FLOAT, _LARGEST_FLOAT = 1e-30, 1e30


def require(holds, name: str, wanted: str, value, advice: str = "") -> None:
    """Raises unless `holds`.

    Args:
        holds: The condition.
        name: The argument, for the error.
        wanted: What the argument must be, in words.
        value: What the caller gave.
        advice: A sentence on what to do instead. Defaults to none.

    Raises:
        UsageError: If `holds` is false.

    Example:

    >>> require(3 % 2 == 1, "size", "an odd number", 3)
    """
    if not holds:
        received = f"`{name}` must be {wanted}. Received: {name}={shown(value)}"
        raise UsageError(f"{received}. {advice}" if advice else received)


def finite_number(name: str, value, advice: str = "") -> float:
    """Returns `value` as a float, if it is a finite number.

    Args:
        name: The argument, for the error.
        value: What the caller gave.
        advice: A sentence on what to do instead. Defaults to none.

    Raises:
        UsageError: If `value` is a boolean, no number, infinite, NaN, or
            beyond 1e30, where float32 ends.
    """
    require(_finite(value), name, "a finite number", value, advice)
    _within_float32(name, value)
    return float(value)


def positive_number(name: str, value, advice: str = "") -> float:
    """Returns `value` as a float, if it is finite and above zero.

    Raises:
        UsageError: If it is not, or if float32 cannot hold it.
    """
    holds = _finite(value) and value > 0
    require(holds, name, "a positive number", value, advice)
    _within_float32(name, value, _SMALLEST_FLOAT)
    return float(value)


def not_negative(name: str, value, advice: str = "") -> float:
    """Returns `value` as a float, if it is finite and at least zero.

    Raises:
        UsageError: If it is not, or if float32 cannot hold it.
    """
    holds = _finite(value) and value >= 0
    require(holds, name, "a number of at least zero", value, advice)
    _within_float32(name, value)
    return float(value)


def in_interval(
    name: str, value, low, high, closed: str = "neither", advice: str = ""
) -> float:
    """Returns `value` as a float, if it lies in an interval.

    Args:
        name: The argument, for the error.
        value: What the caller gave.
        low: Lower end.
        high: Upper end.
        closed: Which ends belong to the interval: `"neither"`, `"left"`,
            `"right"` or `"both"`. Defaults to `"neither"`.
        advice: A sentence on what to do instead. Defaults to none.

    Raises:
        UsageError: If it does not.

    Example:

    >>> in_interval("decay", 1, 0, 1, closed="right")
    1.0
    """
    left, right = closed in ("left", "both"), closed in ("right", "both")
    holds = _finite(value) and (
        low < value < high
        or (left and value == low)
        or (right and value == high)
    )
    ends = f"{'[' if left else '('}{low}, {high}{']' if right else ')'}"
    require(holds, name, f"a number in {ends}", value, advice)
    return float(value)


def integer_at_least(
    name: str, value, least: int, advice: str = "", most: int = _LARGEST
) -> int:
    """Returns `value`, if it is an integer from `least` to `most`.

    Args:
        name: The argument, for the error.
        value: What the caller gave.
        least: The smallest integer.
        advice: A sentence on what to do instead. Defaults to none.
        most: The largest integer. Defaults to the largest that a tensor holds.

    Raises:
        UsageError: If it is not.

    Example:

    >>> integer_at_least("bins", 10, 1, most=1000)
    10
    """
    holds = _is(numbers.Integral, value) and least <= value <= most
    wanted = f"an integer of at least {least}"
    if least == 1:
        wanted = "a positive integer"
    if _is(numbers.Integral, value) and value > most:
        wanted = f"an integer of at most {most}"
    require(holds, name, wanted, value, advice)
    return int(value)


def positive_integer(
    name: str, value, advice: str = "", most: int = _LARGEST
) -> int:
    """Returns `value`, if it is an integer from one to `most`.

    Raises:
        UsageError: If it is not.
    """
    return integer_at_least(name, value, 1, advice, most)


def boolean(name: str, value, advice: str = "") -> bool:
    """Returns `value`, if it is `True` or `False`.

    Raises:
        UsageError: If it is not, such as the string `"false"`.
    """
    holds = isinstance(value, (bool, np.bool_))
    require(holds, name, "True or False", value, advice)
    return bool(value)


def a_path(name: str, value) -> Path:
    """Returns `value` as a `Path`, if it is a string or a path.

    Raises:
        UsageError: If it is not, such as `None` or bytes.
    """
    holds = isinstance(value, (str, Path)) or (
        isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)
    )
    require(holds, name, "a string or a path", value)
    return Path(value)


def optional(check: Callable, name: str, value, *bounds):
    """Returns `None` for `None`, and for other values what `check` returns.

    Args:
        check: Another function of this module.
        name: The argument, for the error.
        value: What the caller gave.
        *bounds: Further arguments of `check`.

    Example:

    >>> optional(in_interval, "level", None, 0, 1)
    """
    return None if value is None else check(name, value, *bounds)


def one_of(name: str, value, known: Iterable):
    """Returns `value`, if it is one of the `known` names.

    Args:
        name: The argument, for the error.
        value: What the caller gave.
        known: The allowed strings, and `None` where it is allowed.

    Raises:
        UsageError: If it is not. The error names one that is close.
    """
    known = tuple(known)
    if not isinstance(value, str | None) or value not in known:
        names = [one for one in known if one is not None]
        close = difflib.get_close_matches(str(value)[:LONGEST], names, n=1)
        advice = f"Did you mean {close[0]!r}?" if close else ""
        wanted = f"one of {', '.join(map(repr, known))}"
        require(False, name, wanted, value, advice)
    return value


def known_options(given: Iterable[str], options: type, caller: str) -> None:
    """Raises if an option is unknown, as Python does for an argument.

    Args:
        given: The names of the options that the caller gave.
        options: The `TypedDict` that declares them.
        caller: What takes the options, for the error.

    Raises:
        TypeError: Names the first one, and those that are close.
    """
    known = options.__annotations__
    for name in given:
        if name not in known:
            raise TypeError(
                f"`{name}` is no option of {caller}. Nearest: "
                f"{nearest(name, known)}."
            )


def of_shape(name: str, array, *axes: str | int, advice: str = ""):
    """Returns `array`, if it has the named axes.

    Args:
        name: The argument, for the error.
        array: Anything with a `shape`; a size may be `None`, for unknown.
        *axes: The name of each axis of any size, or the size itself.
        advice: A sentence on what to do instead. Defaults to none.

    Raises:
        UsageError: If the number of axes or a size differs.

    Example:

    >>> of_shape("logits", np.ones((2, 3)), "batch", 3).shape
    (2, 3)
    """
    shape = tuple(array.shape)
    holds = len(shape) == len(axes) and all(
        isinstance(axis, str) or size in (None, axis)
        for axis, size in zip(axes, shape, strict=False)
    )
    if not holds:
        wanted = ", ".join(map(str, axes)) + ("," if len(axes) == 1 else "")
        raise UsageError(
            f"`{name}` must have the shape ({wanted}). "
            f"Received: {name}.shape={shape}. {advice}".rstrip()
        )
    return array


def _finite(value) -> bool:
    if _is(numbers.Integral, value):
        return True
    return _is(numbers.Real, value) and math.isfinite(value)


def _within_float32(name, value, least=-_LARGEST_FLOAT):
    require(
        least <= value <= _LARGEST_FLOAT,
        name,
        f"a number from {least:g} to {_LARGEST_FLOAT:g}",
        value,
    )


def _is(kind: type, value) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
