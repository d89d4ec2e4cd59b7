"""Reads keys and values of version 0.1 in their present spelling."""

from collections.abc import Mapping
from typing import Any

from keras_dml import former


def current(values: Any, path: tuple[str, ...] = ()) -> Any:
    """Returns a partial configuration with keys and values of today.

    Args:
        values: The section at `path`, or a value.
        path: The keys that lead to `values`. Defaults to `()`: the whole
            configuration.
    """
    key = ".".join(path)
    if isinstance(values, Mapping):
        return {
            former.KEYS.get(f"{key}.{name}", name): current(
                value, (*path, str(name))
            )
            for name, value in values.items()
        }
    if key == "loss" and isinstance(values, list):
        return [_current_term(term) for term in values]
    if isinstance(values, str):
        return former.VALUES.get(key, {}).get(values, values)
    return values


def _current_term(term: Any) -> Any:
    name = term.get("name") if isinstance(term, Mapping) else None
    if not isinstance(name, str) or name not in former.LOSSES:
        return term
    return {**term, "name": former.LOSSES[name]}
