"""Checks arguments and raises errors with uniform wording."""

import math
from collections.abc import Iterable

from keras_dml.errors import UsageError
from keras_dml.naming import nearest


def finite_number(name: str, value) -> float:
    """Returns `value` as a float, if it is a finite number.

    Args:
        name: The argument, for the error.
        value: What the caller gave.

    Raises:
        UsageError: If `value` is a boolean, no number, infinite or NaN.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value):
        raise UsageError(
            f"`{name}` must be a finite number. Received: {name}={value!r}"
        )
    return float(value)


def positive_number(name: str, value) -> float:
    """Returns `value` as a float, if it is finite and above zero.

    Raises:
        UsageError: If it is not.
    """
    if finite_number(name, value) <= 0:
        raise UsageError(
            f"`{name}` must be a positive number. Received: {name}={value!r}"
        )
    return float(value)


def positive_integer(name: str, value) -> int:
    """Returns `value`, if it is an integer of at least one.

    Raises:
        UsageError: If it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(
            f"`{name}` must be a positive integer. Received: {name}={value!r}"
        )
    return value


def one_of(name: str, value, known: Iterable[str]):
    """Returns `value`, if it is one of the `known` names.

    Raises:
        UsageError: If it is not. The error names the nearest one.
    """
    known = tuple(known)
    if value not in known:
        raise UsageError(
            f"`{name}` must be one of {', '.join(map(repr, known))}. "
            f"Received: {name}={value!r}. "
            f"Did you mean {nearest(str(value), known)}?"
        )
    return value
