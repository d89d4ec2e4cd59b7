"""From a recipe, a source of data and overrides to one full configuration."""

import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from keras_dml.config.recipes import Recipe, load_recipe
from keras_dml.config.sections import RunConfig
from keras_dml.config.yaml_files import dump_yaml, parse_yaml, read_yaml
from keras_dml.data.facts import dataset_facts
from keras_dml.errors import UsageError
from keras_dml.naming import nearest

SMALL_IMAGES = 64


def merge(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Merges mappings, later ones over earlier ones; lists are replaced.

    Example:

    >>> merge({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
    {'a': {'b': 3, 'c': 2}}
    """
    merged: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            if isinstance(value, Mapping) and isinstance(
                merged.get(key), Mapping
            ):
                merged[key] = merge(merged[key], value)
            else:
                merged[key] = copy.deepcopy(value)
    return merged


def resolve(
    recipe: str,
    source: str,
    *,
    flags: Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
) -> RunConfig:
    """Resolves the configuration of a run.

    Later parts win: the data set's own facts, the recipe's `common`, its
    section for the data set (else `default`, with `pretrained` over it when
    the backbone starts from weights), its presets, `flags`, `overrides`.

    Args:
        recipe: `NAME`, `FILE.yaml`, or either with `:PRESET`; several presets
            are joined by `+`. The preset `default` takes the `default`
            section also for the paper's own data sets.
        source: Name of a data set, a folder, a CSV file or `tfds:NAME`.
        flags: Nested mapping of what the command line sets by flags.
        overrides: `key=value` strings with dotted keys; values are YAML.

    Returns:
        The validated configuration; sizes left open are `None` until the
        data are read.

    Raises:
        UsageError: If a name, a key or a value is not known or not valid.
    """
    name, _, preset = recipe.partition(":")
    parsed = load_recipe(name)
    flags = merge(flags or {}, {"data": {"source": source}})
    facts = _source_facts(source)
    presets = [one for one in preset.split("+") if one]
    paper_section = source in parsed.sources and "default" not in presets
    base = merge(facts, parsed.common)
    chosen = merge(
        base, parsed.sources[source] if paper_section else parsed.default
    )
    changes = [_preset(parsed, one) for one in presets if one != "default"]
    if not paper_section and _has_weights(merge(chosen, *changes, flags)):
        chosen = merge(chosen, parsed.pretrained)
    values = merge(
        chosen,
        *changes,
        flags,
        {
            "recipe": recipe,
            "section": source if paper_section else "default",
        },
    )
    for override in overrides:
        _set(values, override)
    return validate(values)


def validate(values: Mapping[str, Any]) -> RunConfig:
    """Validates plain values; every mistake becomes one readable sentence."""
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise UsageError("\n".join(explain(error, RunConfig))) from error


def load_run_config(path: Path) -> RunConfig:
    """Reads the `config.yaml` of a run folder."""
    return validate(read_yaml(path))


def dump_run_config(config: RunConfig) -> str:
    """The configuration as YAML; `load_run_config` reads it back."""
    return dump_yaml(config.model_dump(mode="json"))


def _source_facts(source: str) -> dict[str, Any]:
    """What is known of the data: channels, mirroring, K, and a network."""
    facts = dataset_facts(source)
    small = facts.image_size <= SMALL_IMAGES
    return {
        "data": {"channels": facts.channels},
        "augmentation": {"flip": facts.flip},
        "evaluation": {"k": list(facts.recall_k)},
        "model": {"backbone": "small_cnn" if small else "mobilenet_v2"},
    }


def _preset(recipe: Recipe, name: str) -> dict[str, Any]:
    if name not in recipe.presets:
        raise UsageError(
            f"Recipe `{recipe.name}` has no preset {name!r}. "
            f"Its presets: {sorted(recipe.presets) or 'none'}."
        )
    return recipe.presets[name]


def _has_weights(values: Mapping[str, Any]) -> bool:
    model = values.get("model", {})
    weights = model.get("weights", "auto")
    if weights == "auto":
        return model.get("backbone", "small_cnn") != "small_cnn"
    return weights != "none"


def _set(values: dict[str, Any], override: str) -> None:
    """Applies one `key=value`; list items are addressed by their number."""
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise UsageError(
            f"`--set` takes `key=value`, such as `--set model.dim=64`. "
            f"Received: {override!r}"
        )
    *parents, last = key.split(".")
    target: Any = values
    for number, part in enumerate(parents):
        if isinstance(target, list):
            target = target[_position(target, part, key)]
        elif isinstance(target.get(part), (dict, list)):
            target = target[part]
        elif target.get(part) is None:
            target = target.setdefault(part, {})
        else:
            path = ".".join(parents[: number + 1])
            raise UsageError(
                f"`--set {override}`: `{path}` is a value, not a section."
            )
    value = parse_yaml(text)
    if isinstance(target, list):
        target[_position(target, last, key)] = value
    else:
        target[last] = value


def _position(items: list[Any], part: str, key: str) -> int:
    if not part.isdigit() or int(part) >= len(items):
        raise UsageError(
            f"`--set {key}`: {part!r} must be a position from 0 to "
            f"{len(items) - 1}."
        )
    return int(part)


def explain(error: ValidationError, root: type[BaseModel]) -> list[str]:
    """Every mistake that pydantic found, as a sentence each."""
    return [_explain(item, root) for item in error.errors()]


def _explain(item: Any, root: type[BaseModel]) -> str:
    """One pydantic error as one sentence that says what would be right."""
    location = item["loc"]
    key = ".".join(str(part) for part in location)
    if item["type"] == "extra_forbidden":
        known = _fields_at(location[:-1], root)
        return (
            f"Unknown configuration key `{key}`. Nearest: "
            f"{nearest(str(location[-1]), known)}."
        )
    message = item["msg"].removeprefix("Value error, ").rstrip(".")
    if not key:
        return f"{message[:1].upper()}{message[1:]}."
    return f"Configuration key `{key}`: {message}. Received: {item['input']!r}"


def _fields_at(
    location: Sequence[int | str], section: type[BaseModel]
) -> list[str]:
    """Names of the fields of the section at `location`."""
    for part in location:
        if isinstance(part, str) and part in section.model_fields:
            inner = _section_of(section.model_fields[part].annotation)
            section = inner or section
    return list(section.model_fields)


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """The section class inside `X`, `list[X]` or `X | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, Union, UnionType):
        for argument in get_args(annotation):
            found = _section_of(argument)
            if found:
                return found
    return None
