"""Resolves a recipe, a source and overrides to one full configuration."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_dml import former
from keras_dml.backbone_facts import starts_from_weights
from keras_dml.config.derived import complete
from keras_dml.config.earlier_run import with_changes
from keras_dml.config.explanation import Explanation
from keras_dml.config.flags import flag_layers
from keras_dml.config.merging import BUILT_IN, Layer, Merged
from keras_dml.config.recipes import (
    DEFAULT_RECIPE,
    PRETRAINED_RECIPE,
    Recipe,
    load_recipe,
    recipe_names,
)
from keras_dml.config.sections import ModelConfig, RunConfig
from keras_dml.config.settings import Settings, parse_settings
from keras_dml.config.validation import validated
from keras_dml.config.yaml_files import dump_yaml, read_yaml
from keras_dml.data.facts import dataset_facts
from keras_dml.errors import UsageError
from keras_dml.files import check_text
from keras_dml.wording import listed

# The settings of what stands between the images and the loss.
_FED = {
    "sampling": ("kind", "images"),
    "model": ("proxies", "scale", "logits_bias"),
}
# The settings of `model` that sections of recipes, and the default one, follow.
_NETWORK = ("backbone", "weights")


def explain(
    recipe: str | None = None,
    source: str = "",
    *,
    flags: Mapping[str, Any] | None = None,
    overrides: Settings = (),
) -> Explanation:
    """Resolves the configuration of a run and says where each value was set.

    Args:
        recipe: As for `resolve`. Defaults to `None`, the default recipe.
        source: As for `resolve`. Defaults to `""`: the user's own images.
        flags: As for `resolve`. Defaults to none.
        overrides: As for `resolve`. Defaults to none.

    Raises:
        UsageError: As for `resolve`.

    Example:

    >>> explain("hbn:authors", "cub200").origins["model.logits_bias"]
    'bn: published'
    """
    whence = "flag" if recipe else BUILT_IN
    network = _network(flags or {}, overrides)
    recipe = str(recipe or _default_recipe(source, network))
    name, _, preset = recipe.partition(":")
    parsed = load_recipe(name)
    presets = [one for one in preset.split("+") if one]
    published = source in parsed.sources and "default" not in presets
    chosen = [former.PRESETS.get(one, one) for one in presets]

    def layers(backbone: str, pretrained: bool) -> list[Layer]:
        parts = [("common", ""), ("default", "")]
        if published:
            parts[1:] = [("published", ""), ("sources", source)]
        elif pretrained:
            parts.append(("pretrained", ""))
        parts += [("presets", one) for one in chosen if one != "default"]
        found = [
            layer
            for part in parts
            for layer in parsed.layers(*part, source=source, backbone=backbone)
        ]
        return [*_facts(source), *found]

    _check_presets(parsed, chosen)
    backbone, pretrained = "", False
    known = [*layers(backbone, pretrained), Layer("", network)]
    model = Merged(known).values["model"]
    # A section of another type is refused once all is merged.
    if isinstance(model, Mapping):
        backbone = str(model["backbone"])
        weights = model.get("weights", "auto")
        pretrained = starts_from_weights(backbone, weights)
    merged = Merged(layers(backbone, pretrained))
    for layer in (
        *_fed_to_loss(flags or {}, source, network),
        *flag_layers(flags or {}, merged, source),
        Layer(whence, {"recipe": recipe}),
        Layer("recipe", {"section": source if published else "default"}),
    ):
        merged.add(layer)
    check_text(source)
    merged.override(overrides)
    complete(merged)
    return Explanation(validated(RunConfig, merged.values), merged.origins)


def _default_recipe(source: str, network: Mapping[str, Any]) -> str:
    """Returns the recipe that a run takes if nobody names one."""
    plain = resolve(DEFAULT_RECIPE, source, flags=network)
    model = plain.model
    pretrained = starts_from_weights(model.backbone, model.weights)
    if pretrained and plain.section == "default":
        return PRETRAINED_RECIPE
    return DEFAULT_RECIPE


def _network(flags: Mapping[str, Any], overrides: Settings) -> dict[str, Any]:
    """Returns what flags and overrides say of the network and its weights."""
    given = {**flags.get("model", {})}
    for key, value in parse_settings(overrides):
        if key == "model" and isinstance(value, Mapping):
            given = {**ModelConfig().model_dump(), **value}
        elif key.startswith("model."):
            given[key.removeprefix("model.")] = value
    # Others than texts are refused once all is merged.
    chosen = {
        key: given[key] for key in _NETWORK if isinstance(given.get(key), str)
    }
    return {"model": chosen} if chosen else {}


def _fed_to_loss(
    flags: Mapping[str, Any], source: str, network: Mapping[str, Any]
) -> list[Layer]:
    """Returns what the recipe of a flag's loss has in front of the loss.

    A loss on pairs needs batches with pairs, and has no proxies to start.
    """
    names = [term["name"] for term in flags.get("loss", ())]
    if len(names) != 1 or names[0] not in recipe_names():
        return []
    own = resolve(names[0], source, flags=network).model_dump()
    values = {
        section: {key: own[section][key] for key in keys}
        for section, keys in _FED.items()
    }
    return [Layer(f"recipe {names[0]}", values)]


def resolve(
    recipe: str | None,
    source: str,
    *,
    flags: Mapping[str, Any] | None = None,
    overrides: Settings = (),
) -> RunConfig:
    """Resolves the configuration of a run.

    Later parts win: the data set's own facts, the recipe's `common`, its
    `published` and its section for the data set (else `default`, with
    `pretrained` over it if the backbone starts from weights), its presets,
    `flags`, `overrides`.

    Args:
        recipe: `NAME`, `FILE.yaml`, or either with `:PRESET`; several presets
            are joined by `+`. The preset `default` takes the `default`
            section also for the paper's own data sets. `None` is the default
            recipe.
        source: Name of a data set, a folder, a CSV file or `tfds:NAME`.
        flags: Nested mapping of settings. Defaults to none.
        overrides: Settings: a mapping of dotted keys to values, or `key=value`
            strings with YAML values. Items of lists go by name or position:
            `stages.main.train.epochs=20`, `loss.proxy_anchor.margin=0.2`,
            `stages.0.phases.0.epochs=20`. A mapping replaces a section, and
            changes an item. Defaults to none.

    Returns:
        The validated configuration; sizes left open are `None` until the
        data are read.

    Raises:
        UsageError: If a name or a key is unknown, or a value is not valid.

    Example:

    >>> resolve("triplet", "digits", overrides=["model.dim=64"]).model.dim
    64
    """
    return explain(recipe, source, flags=flags, overrides=overrides).config


def validate(values: Mapping[str, Any]) -> RunConfig:
    """Completes and validates plain values.

    Raises:
        UsageError: If values are not valid; one sentence names each mistake.
    """
    return validated(RunConfig, complete(Merged([Layer("", values)])).values)


def load_run_config(path: Path) -> RunConfig:
    """Reads the `config.yaml` of a run folder."""
    return validate(read_yaml(path))


def again(
    path: Path,
    source: str | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    overrides: Settings = (),
) -> RunConfig:
    """Returns the configuration of an earlier run, to train it again.

    Args:
        path: The `config.yaml` of the run.
        source: Where the images are now. Defaults to `None`, where they were.
        flags: As for `resolve`. Defaults to none.
        overrides: As for `resolve`. Defaults to none.

    Raises:
        UsageError: If the file cannot be read, or a key or a value is not
            valid.
    """
    earlier, flags = read_yaml(path), flags or {}
    fed: list[Layer] = []
    if "loss" in flags:
        own = validate(earlier)
        network = {key: getattr(own.model, key) for key in _NETWORK}
        network |= flags.get("model", {})
        fed = _fed_to_loss(flags, own.data.source, {"model": network})
    merged = with_changes(
        earlier, source, flags, overrides, fed, _usual_steps(earlier)
    )
    return validated(RunConfig, complete(merged).values)


def _usual_steps(earlier: Mapping[str, Any]) -> int | None:
    """Returns the steps of an epoch by the recipe of a run, if it is there."""
    try:
        own = validate(earlier)
        network = {"backbone": own.model.backbone, "weights": own.model.weights}
        usual = resolve(own.recipe, own.data.source, flags={"model": network})
    except UsageError:
        return None
    return usual.sampling.steps_per_epoch


def load_any(
    name: str,
    source: str = "",
    *,
    flags: Mapping[str, Any] | None = None,
    overrides: Settings = (),
) -> RunConfig:
    """Returns the configuration of a run folder, a file or a recipe.

    Args:
        name: A run folder, its `config.yaml`, or a recipe as for `resolve`.
        source: Source of data for a recipe. Defaults to `""`: the user's own
            images.
        flags: As for `resolve`, for a recipe. Defaults to none.
        overrides: As for `resolve`, for a recipe. Defaults to none.

    Raises:
        UsageError: If the name is unknown, the configuration is not valid, or
            that of a run would be changed.
    """
    path = Path(name)
    if path.is_dir():
        path /= "config.yaml"
        if not path.is_file():
            raise UsageError(
                "`name` must be a run folder, its `config.yaml` or a recipe. "
                f"Received: {name!r}, a folder without `config.yaml`. Give "
                "the `output` of `fit`."
            )
    # The file of a run has `stages` at the top; a recipe has parts.
    if path.is_file() and "stages" in read_yaml(path):
        if flags or overrides:
            raise UsageError(
                f"{name} is a run, whose settings stay as they are. Received "
                "with it: other settings. Leave them out, or compare recipes."
            )
        return load_run_config(path)
    return resolve(name, source, flags=flags, overrides=overrides)


def dump_run_config(config: RunConfig) -> str:
    """Returns the configuration as YAML; `load_run_config` reads it back."""
    return dump_yaml(config.model_dump(mode="json"))


def _facts(source: str) -> Iterator[Layer]:
    """Yields the facts of a data set: channels, flips, K and a network."""
    facts = dataset_facts(source)
    yield Layer(
        f"data set {facts.name}",
        {
            "data": {
                "channels": facts.channels,
                "quarter_turns": facts.quarter_turns,
            },
            "augmentation": {"flip": facts.flip},
            "evaluation": {"k": list(facts.recall_k)},
            "model": {"backbone": facts.backbone},
        },
    )


def _check_presets(recipe: Recipe, names: list[str]) -> None:
    for name in names:
        if name not in ("default", *recipe.presets):
            raise UsageError(
                f"Recipe `{recipe.name}` has no preset {name!r}. "
                f"Its presets: {listed(sorted(recipe.presets)) or 'none'}."
            )
