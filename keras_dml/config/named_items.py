"""Marks the parts of a configuration that change the items of a list by name.

The lists `loss`, `stages` and `phases` hold items with names. A mapping in
place of such a list changes the items that it names, and may leave out the
keys `arguments` and `phases` in between.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from keras_dml.config.sections import LossConfig
from keras_dml.config.training_sections import PhaseConfig, StageConfig

TERM = frozenset(LossConfig.model_fields)
STAGE = frozenset(StageConfig.model_fields)
STAGE_NAME = StageConfig.model_fields["name"].default
PHASE_NAME = PhaseConfig.model_fields["name"].default


@dataclass(frozen=True)
class Whole:
    """A mapping that replaces what was there."""

    value: Mapping[str, Any]


class ByName(dict):
    """Changes of the items of a list, by name or position.

    Attributes:
        unnamed: The name of items that have no name.
        known: Other valid names, for the error message.
    """

    def __init__(self, items, unnamed="", known=()):
        for name, item in items.items():
            self[str(name)] = {} if item is None else item
        self.unnamed, self.known = unnamed, known


def marked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Marks mappings that stand for named lists, and writes out short forms."""
    marks = dict(values)
    loss, stages = values.get("loss"), values.get("stages")
    if isinstance(loss, Mapping):
        terms = {name: _term(term) for name, term in loss.items()}
        marks["loss"] = ByName(terms)
    if isinstance(stages, Mapping):
        changes = {name: _stage(stage) for name, stage in stages.items()}
        marks["stages"] = ByName(changes, STAGE_NAME)
    return marks


def _term(term: Any) -> Any:
    """Returns a term of the loss; unknown keys become its arguments."""
    if not isinstance(term, Mapping):
        return term
    arguments = {key: term[key] for key in term if key not in TERM}
    known = {key: term[key] for key in term if key in TERM}
    if arguments:
        known["arguments"] = {**(term.get("arguments") or {}), **arguments}
    return known


def _stage(stage: Any) -> Any:
    """Returns a stage; unknown keys become names of its phases."""
    if not isinstance(stage, Mapping):
        return stage
    phases = {key: stage[key] for key in stage if key not in STAGE}
    known = {key: stage[key] for key in stage if key in STAGE}
    if isinstance(stage.get("phases"), Mapping):
        phases = {**known.pop("phases"), **phases}
    if phases:
        known["phases"] = ByName(phases, PHASE_NAME, STAGE)
    return known


def list_of_item(key: str) -> str | None:
    """Returns the key of the list that has the item of a dotted key, if any.

    Example:

    >>> list_of_item("stages.main.warm_up")
    'stages.main.phases'
    """
    match key.split("."):
        case ["loss" | "stages" as items, _]:
            return items
        case ["stages", stage, "phases", _]:
            return f"stages.{stage}.phases"
        case ["stages", stage, phase] if phase not in STAGE:
            return f"stages.{stage}.phases"
    return None


def nested(key: str, value: Any) -> dict[str, Any]:
    """Returns the partial configuration that sets a dotted key.

    A mapping replaces the section of that key: what it leaves out has the
    built-in value. A mapping for `loss`, `stages` or `phases`, or for an item
    of these, changes what it names.

    Example:

    >>> nested("model.dim", 64)
    {'model': {'dim': 64}}
    """
    *above, last = key.split(".")
    names_items = _is_list(key) or list_of_item(key) is not None
    if isinstance(value, Mapping) and not names_items:
        value = Whole(value)
    part = {last: value}
    for name in reversed(above):
        part = {name: part}
    return part


def _is_list(key: str) -> bool:
    """Whether a dotted key is that of a list of items with names."""
    match key.split("."):
        case ["loss" | "stages"] | ["stages", _, "phases"]:
            return True
    return False
