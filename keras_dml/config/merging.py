"""Merges partial configurations and remembers where each value came from.

A mapping changes the keys it names; anything else replaces what was there. The
mapping of an override replaces its section, see `nested`.
The lists `loss`, `stages` and `phases` hold items with names. A list replaces
such a list; a mapping from names, or positions, changes the items it names:

```yaml
loss: {proxy_anchor: {margin: 0.2}} # an argument of this term
stages: {main: {train: {epochs: 20}}} # the phase `train` of the stage `main`
```
"""

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keras_dml.config.legacy import current
from keras_dml.config.named_items import (
    PHASE_NAME,
    STAGE_NAME,
    TERM,
    ByName,
    Whole,
    list_of_item,
    marked,
    nested,
)
from keras_dml.config.settings import Settings, parse_settings
from keras_dml.errors import UsageError
from keras_dml.naming import nearest, shortened, shown

BUILT_IN = "built in"


@dataclass(frozen=True)
class Layer:
    """A partial configuration and its origin, such as "proxy_anchor: common".

    Attributes:
        origin: Where the values were set.
        values: The partial configuration.
    """

    origin: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class _Leaf:
    """A value in the merged tree, with the origin of the layer that set it."""

    value: Any
    origin: str


class Merged:
    """Layers merged in order: later ones over earlier ones.

    Args:
        layers: The first layers.

    Example:

    >>> merged = Merged([Layer("one", {"a": {"b": 1, "c": 2}})])
    >>> merged.add(Layer("two", {"a": {"b": 3}}))
    >>> merged.values
    {'a': {'b': 3, 'c': 2}}
    >>> merged.origins
    {'a.b': 'two', 'a.c': 'one'}
    """

    def __init__(self, layers: Iterable[Layer] = ()) -> None:
        self._tree: Any = {}
        for layer in layers:
            self.add(layer)

    def add(self, layer: Layer) -> None:
        """Merges one more layer over the others.

        Raises:
            UsageError: If it names an item that a list does not have, or
                treats a value as a section.
        """
        changes = marked(current(layer.values))
        self._tree = _merge(self._tree, changes, layer.origin, ())

    def override(self, settings: Settings) -> None:
        """Merges settings over the others, in their order.

        Raises:
            UsageError: As for `add` and `parse_settings`.
        """
        for key, value in parse_settings(settings):
            if key == "recipe" and value != self.values.get("recipe"):
                raise UsageError(
                    "`recipe` cannot be one of the settings, for it decides "
                    f"what they are. Received: recipe={shown(value)}. Give it "
                    "as the recipe, or as an arm of a plan."
                )
            whole = list_of_item(key)
            if whole and value is None:
                raise UsageError(
                    f"`{key}` must be a mapping. Received: null. To leave an "
                    f"item out, give the whole list, `{whole}=[...]`."
                )
            self.add(Layer("override", nested(key, value)))

    @property
    def values(self) -> dict[str, Any]:
        """The plain values."""
        values: dict[str, Any] = _plain(self._tree)
        return values

    @property
    def origins(self) -> dict[str, str]:
        """The origin of each value by its key, as `flatten` names it."""
        return {
            key: leaf.origin if isinstance(leaf, _Leaf) else BUILT_IN
            for key, leaf in flatten(self._tree).items()
        }


def flatten(values: Any) -> dict[str, Any]:
    """Returns the values by dotted key, in the spelling of overrides.

    Example:

    >>> flatten({"stages": [{"name": "main", "phases": [{"epochs": 3}]}]})
    {'stages.main.name': 'main', 'stages.main.train.epochs': 3}
    """
    leaves = _leaves(values, ()) if values else ()
    return {".".join(path): value for path, value in leaves}


def _merge(below: Any, above: Any, origin: str, path: tuple[str, ...]) -> Any:
    if isinstance(above, Whole):
        return _merge(None, above.value, origin, path)
    if isinstance(above, ByName):
        return _merge_items(below, above, origin, path)
    if isinstance(above, Mapping):
        empty = below is None or (isinstance(below, _Leaf) and not below.value)
        if not empty and not isinstance(below, dict):
            key = shortened(".".join(path))
            raise UsageError(
                f"`{key}` is a value, not a section, which has keys. Received: "
                f"{shown(next(iter(above), None))} as a key of it. Set `{key}` "
                "itself."
            )
        merged = {} if empty else dict(below)
        for key, value in above.items():
            merged[key] = _merge(
                merged.get(key), value, origin, (*path, str(key))
            )
        return merged
    if _holds_mappings(above):
        return [_merge(None, item, origin, path) for item in above]
    return _Leaf(copy.deepcopy(above), origin)


def _merge_items(
    below: Any, above: ByName, origin: str, path: tuple[str, ...]
) -> list[Any]:
    if not isinstance(below, list):
        named = (
            {"name": name, **item} if isinstance(item, Mapping) else item
            for name, item in above.items()
        )
        return [_merge(None, item, origin, path) for item in named]
    items = list(below)
    for name, change in above.items():
        place = _place(items, name, above, path)
        items[place] = _merge(items[place], change, origin, (*path, name))
    return items


def _place(
    items: Sequence[Any], name: str, above: ByName, path: tuple[str, ...]
) -> int:
    """Returns the position of the item with this name or number."""
    names = [_name_of(item) or above.unnamed for item in items]
    if names.count(name) == 1:
        return names.index(name)
    if name in map(str, range(len(items))):
        return int(name)
    known = [*dict.fromkeys(names), *sorted(above.known)]
    which = "names more than one" if name in names else "names none"
    expected = shortened(", ".join(map(repr, dict.fromkeys(names))))
    raise UsageError(
        f"`{shortened('.'.join((*path, name)))}` {which} of the items: "
        f"expected a name, {expected}, or a position from 0 to "
        f"{len(items) - 1}. Received: {shown(name)}. Nearest: "
        f"{nearest(name, known)}. To replace the items, give a list."
    )


def _plain(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(item) for item in node]
    return copy.deepcopy(node.value)


def _leaves(
    node: Any, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(node, dict) and node:
        for key, value in node.items():
            short = (key == "phases" and len(path) == 2) or (
                key == "arguments" and path[:1] == ("loss",)
            )
            clashes = short and isinstance(value, dict) and TERM & {*value}
            if not value and short:
                continue
            yield from _leaves(
                value, path if short and not clashes else (*path, str(key))
            )
    elif _holds_mappings(node):
        unnamed = {1: STAGE_NAME, 2: PHASE_NAME}.get(len(path), "")
        names = [_name_of(item) or unnamed for item in node]
        for place, (name, item) in enumerate(zip(names, node, strict=True)):
            unique = names.count(name) == 1
            yield from _leaves(item, (*path, name if unique else str(place)))
    else:
        yield path, node


def _name_of(item: Any) -> str:
    name = item.get("name", "") if isinstance(item, Mapping) else ""
    return str(name.value if isinstance(name, _Leaf) else name)


def _holds_mappings(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, Mapping) for item in value)
    )
