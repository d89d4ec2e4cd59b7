"""Names and values in messages, and suggestions for misspelled names."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

# Messages stay short, and comparing long names would take minutes.
LONGEST = 200


def shortened(text: str, most: int = LONGEST) -> str:
    """Returns a text, cut to `most` characters if it is longer.

    Example:

    >>> shortened("a long text", 6)
    'a l...'
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def shown(value: Any) -> str:
    """Returns any value as a short text for a message.

    Example:

    >>> shown([1, "two"])
    "[1, 'two']"
    """
    try:
        return shortened(repr(value))
    # An integer of more digits than Python writes, or endless nesting.
    except (ValueError, RecursionError):
        return f"a value of type {type(value).__name__} that is too long"


def nearest(name: str, names: Iterable[str]) -> str:
    """Returns the known names closest to `name`, quoted; at least one.

    Example:

    >>> nearest("proxynca_p", ["softmax", "proxynca_pp"])
    "'proxynca_pp'"
    >>> nearest("dimension", ["whitening", "dim"])
    "'dim'"
    """
    name, known = name[:LONGEST], list(names)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if not close:
        close = [one for one in known if one and name.startswith(one)]
    if not close:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return ", ".join(repr(found) for found in close)


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Returns the leaves of nested sections by dotted key; lists are leaves.

    Example:

    >>> flatten({"model": {"dim": 64}, "seed": 0})
    {'model.dim': 64, 'seed': 0}
    """
    leaves: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            leaves |= flatten(value, f"{prefix}{key}.")
        else:
            leaves[f"{prefix}{key}"] = value
    return leaves


def differences(
    stored: Mapping[str, Any], given: Mapping[str, Any]
) -> list[str]:
    """Returns the settings that differ, each as a part of a sentence.

    Example:

    >>> differences({"model": {"dim": 64}}, {"model": {"dim": 128}})
    ['`model.dim` was 64, received 128']
    """
    old, new = flatten(stored), flatten(given)
    return [
        f"`{key}` was {old.get(key)!r}, received {new.get(key)!r}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
