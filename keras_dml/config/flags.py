"""The arguments of `fit` that are settings of a run."""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, get_args

from keras_dml.config.merging import BUILT_IN, Layer, Merged, flatten
from keras_dml.config.named_items import PHASE_NAME, STAGE_NAME
from keras_dml.config.training_sections import GroupConfig, PhaseConfig
from keras_dml.config.yaml_files import MOST_CHARACTERS, MOST_VALUES
from keras_dml.errors import UsageError
from keras_dml.files import read_some
from keras_dml.fit_options import options_that_set
from keras_dml.wording import listed

# The key, or keys, of the settings that each argument sets.
FLAGS = {
    "seed": "seed",
    "backbone": "model.backbone",
    "weights": "model.weights",
    **options_that_set(),
}
EPOCHS = FLAGS["epochs"]
# From what freezes least to what freezes most.
FREEZES = get_args(PhaseConfig.model_fields["freeze"].annotation)
_, _STAGE, _PHASE, _ = EPOCHS.split(".")
# The other settings of a run, and a dash and an indent before each name, must
# fit into its `config.yaml` too.
MOST_NAMED = MOST_VALUES - 5_000
MOST_LETTERS = MOST_CHARACTERS // 2


def flags_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those arguments of `fit` that are settings, for `resolve`.

    Args:
        arguments: Arguments by name. `None` leaves the setting to the recipe.

    Returns:
        Nested mapping of settings. `minutes` opens the epochs and lifts the
        bound of `passes`, and `epochs` removes the minutes.

    Raises:
        UsageError: If both `minutes` and `epochs` are given, or the file of
            `train_classes` cannot be read or names no class.

    Example:

    >>> flags_of({"seed": 1, "backbone": "resnet50", "weights": None})
    {'seed': 1, 'model': {'backbone': 'resnet50'}}
    """
    flags: dict[str, Any] = {}
    given: dict[str, Any] = {
        key: arguments[name]
        for name, keys in FLAGS.items()
        if arguments.get(name) is not None
        for key in keys.split()
    }
    if len({"minutes", EPOCHS} & given.keys()) == 2:
        raise UsageError(
            "`minutes` and `epochs` both say how long to train. Received: "
            f"`minutes={arguments['minutes']:g}` and "
            f"`epochs={arguments['epochs']}`. Leave one of them out."
        )
    # Each of them replaces the other in a recipe or an earlier run.
    if "minutes" in given:
        given |= {EPOCHS: None, "passes": None}
    elif EPOCHS in given:
        given["minutes"] = None
    if "loss" in given:
        given["loss"] = [{"name": given["loss"]}]
    for key in ("model.matryoshka", "data.train_classes"):
        # What is no collection, validation refuses.
        value = given.get(key)
        if isinstance(value, Collection) and not isinstance(value, str):
            given[key] = list(value)
    classes = given.get("data.train_classes")
    if isinstance(classes, str | os.PathLike):
        given["data.train_classes"] = _listed_classes(Path(classes))
    for key, value in given.items():
        *above, last = key.split(".")
        section = flags
        for part in above:
            section = section.setdefault(part, {})
        is_path = isinstance(value, os.PathLike)
        section[last] = os.fspath(value) if is_path else value
    return flags


def flag_layers(
    flags: Mapping[str, Any], below: Merged, source: str | None = None
) -> list[Layer]:
    """Returns the layers of flags over the settings below them.

    Args:
        flags: Result of `flags_of`.
        below: The settings below them.
        source: The source of the images. Defaults to `None`, that of the
            settings below.

    Raises:
        UsageError: If a flag changes a phase that is not there.
    """
    values = below.values
    changes = _changes_of_phase(flags)
    _check_phase(changes, flags.get("minutes"), values.get("stages"))
    frozen = _frozen_alike(changes.get("freeze"), values.get("stages"))
    layers = [Layer("flag", frozen), Layer("flag", flags)]
    if source is not None:
        layers.append(Layer("flag", {"data": {"source": source}}))
    rates = flatten(values.get("optimizer"))
    rate = rates.get("backbone.lr", GroupConfig().lr)
    changed = "optimizer.backbone.lr" in flatten(flags)
    # A rate that the proxies take over would change with the backbone's.
    if changed and rate is not None and rates.get("proxies.lr") is None:
        origin = below.origins.get("optimizer.backbone.lr", BUILT_IN)
        layers.append(Layer(origin, {"optimizer": {"proxies": {"lr": rate}}}))
    return layers


def _changes_of_phase(flags: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns what flags change of the phase that they name."""
    changes: Any = flags
    for name in ("stages", _STAGE, _PHASE):
        changes = changes.get(name) if isinstance(changes, Mapping) else None
    return changes or {}


def _check_phase(
    changes: Mapping[str, Any], minutes: float | None, stages: Any
) -> None:
    """Raises if flags change a phase that the stages do not have."""
    phases = {
        stage: [*_by_name(values.get("phases"), PHASE_NAME)]
        for stage, values in _by_name(stages, STAGE_NAME).items()
    }
    # Stages that are none are refused once all is merged.
    if not changes or not phases or _PHASE in phases.get(_STAGE, ()):
        return
    key, value = next(iter(changes.items()))
    argument = key
    if value is None and minutes is not None:
        argument, value = "minutes", f"{minutes:g}"
    instead = [
        f"`stages.{stage}.{_PHASE if _PHASE in names else names[-1]}.{key}`"
        for stage, names in phases.items()
        if names
    ]
    raise UsageError(
        f"`{argument}` changes the phase {_PHASE!r} of the stage {_STAGE!r}, "
        f"which is not there. Received: {argument}={value} with the stages "
        f"{listed(map(repr, phases))}. Set {listed(instead)} with "
        "`settings` instead."
    )


def _frozen_alike(asked: str | None, stages: Any) -> dict[str, Any]:
    """Returns settings that freeze as much in the other phases of the stage.

    A later phase, such as a heated one, would train what the flag froze.
    """
    if asked not in FREEZES:
        return {}
    as_much = FREEZES[FREEZES.index(asked) :]
    phases = _by_name(stages, STAGE_NAME).get(_STAGE, {}).get("phases")
    others = {
        name: {"freeze": asked}
        for name, phase in _by_name(phases, PHASE_NAME).items()
        if phase.get("freeze", FREEZES[0]) not in as_much
    }
    return {"stages": {_STAGE: others}} if others else {}


def _by_name(items: Any, unnamed: str) -> dict[str, Mapping[str, Any]]:
    """Returns the mappings of a list by their names."""
    return {
        str(item.get("name", unnamed)): item
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, Mapping)
    }


def _listed_classes(path: Path) -> list[str]:
    """Reads the names of classes, one in each line."""
    try:
        lines = read_some(path, MOST_CHARACTERS).splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(
            "`train_classes` must be a text file that names one class in each "
            f"line. Received: {str(path)!r} ({error})"
        ) from error
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise UsageError(
            "`train_classes` must name at least one class. Received: the "
            f"empty file {str(path)!r}"
        )
    if len(names) > MOST_NAMED or len("".join(names)) > MOST_LETTERS:
        raise UsageError(
            f"`train_classes` must name at most {MOST_NAMED:,} classes, in "
            f"{MOST_LETTERS:,} characters, since a run keeps the names in its "
            f"`config.yaml`. Received: {len(names):,} names in {str(path)!r}. "
            "A CSV file with a column `split` has no such limit."
        )
    return names
