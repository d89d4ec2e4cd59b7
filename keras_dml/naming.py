"""Finds what a misspelt name was meant to be."""

import difflib
from collections.abc import Iterable


def nearest(name: str, names: Iterable[str]) -> str:
    """The known names closest to `name`, quoted and joined; at least one.

    Example:

    >>> nearest("proxynca_p", ["softmax", "proxynca_pp"])
    "'proxynca_pp'"
    """
    known = list(names)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if not close:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return ", ".join(repr(found) for found in close)
