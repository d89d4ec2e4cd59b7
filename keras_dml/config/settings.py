"""Settings by dotted keys: `key=value` and mappings of keys to values."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from keras_dml.config.yaml_files import DEEPEST, parse_yaml
from keras_dml.errors import UsageError
from keras_dml.naming import shortened, shown

Settings = Mapping[str, Any] | Sequence[str]


def parse_settings(settings: Settings) -> list[tuple[str, Any]]:
    """Reads settings as pairs of a dotted key and a plain value.

    Args:
        settings: A mapping of dotted keys to values, or texts `key=value`
            with YAML values.

    Raises:
        UsageError: If a text is not `key=value`, or a value is no plain one.

    Example:

    >>> parse_settings(["model.dim=64", "loss.triplet.margin=0.3"])
    [('model.dim', 64), ('loss.triplet.margin', 0.3)]
    """
    if isinstance(settings, Mapping):
        try:
            plain: dict[str, Any] = json.loads(json.dumps(dict(settings)))
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                "`settings` must map keys to plain values: numbers, texts, "
                f"lists and mappings. Received: {shown(settings)}"
            ) from error
        return [(_short(key), value) for key, value in plain.items()]
    pairs = []
    for setting in [settings] if isinstance(settings, str) else settings:
        key, equals, text = str(setting).partition("=")
        if not equals or not key:
            raise UsageError(
                "A setting must be `key=value`, such as `model.dim=64`. "
                f"Received: {shown(setting)}"
            )
        source = f"The value of `{shortened(key)}`"
        pairs.append((_short(key), parse_yaml(text, source)))
    return pairs


def _short(key: str) -> str:
    """Returns a dotted key, if it has no more parts than values nest."""
    if key.count(".") < DEEPEST:
        return key
    raise UsageError(
        f"A key must have at most {DEEPEST} parts. Received: {shown(key)}"
    )
