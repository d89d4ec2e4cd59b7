"""Where the keys of a run are set: in which recipes, or by the data."""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from keras_dml.config import explain, load_recipe, recipe_names
from site_pages.markdown import as_code, as_yaml

# The caller's own words, and what says which part of a recipe was taken.
_NOT_SHOWN = ("flag", "recipe", "built in")
_MOST = 8
_ARGUMENTS = "loss.LOSS.arguments"


def place_of(key: str, known: Iterable[str]) -> str:
    """Returns the place of a key on its page.

    Args:
        key: A key as `keras-dml config` shows it, with the names of losses,
            stages and phases.
        known: The places of the page.
    """
    place = re.sub(r"^loss\.\w+", "loss.LOSS", key)
    place = re.sub(r"^stages\.\w+", "stages.STAGE", place)
    place = re.sub(r"^(stages\.STAGE)\.\w+(?=\.)", r"\1.PHASE", place)
    if place not in known and place.startswith("loss.LOSS."):
        return _ARGUMENTS
    return place if place in known else place.rpartition(".")[0]


def origin_text(places: list[str], known: Iterable[str]) -> str:
    """Returns what sets the keys of some places, in sentences."""
    photos, setters = _origins(tuple(known))
    shown = [
        (as_code(one) + " " if len(places) > 1 else "")
        + f"{as_code(as_yaml(photos[one][0]))} from {as_code(photos[one][1])}"
        for one in places
        if one in photos
    ]
    names = sorted({name for one in places for name in setters.get(one, ())})
    texts = [f"On photos: {', '.join(shown)}"] if shown else []
    if names:
        more = len(names) - _MOST
        listed = ", ".join(names[:_MOST])
        texts.append(f"Set by {listed}" + (f" and {more} more" * (more > 0)))
    return ". ".join(texts)


@functools.cache
def _origins(
    known: tuple[str, ...],
) -> tuple[Mapping[str, tuple[Any, str]], Mapping[str, set[str]]]:
    """Returns value and origin in a run on photos, and all that set a key."""
    photos: dict[str, tuple[Any, str]] = {}
    for one in explain().settings:
        if one.origin in _NOT_SHOWN:
            continue
        place, value = place_of(one.key, known), one.value
        if place == _ARGUMENTS and one.key.rpartition(".")[2] != "arguments":
            others = photos.get(place, ({}, ""))[0]
            value = {**others, one.key.rpartition(".")[2]: value}
        photos[place] = (value, one.origin)
    setters: dict[str, set[str]] = {}
    for name in recipe_names():
        for source in ("", *load_recipe(name).sources):
            for key, origin in explain(name, source).origins.items():
                if origin not in _NOT_SHOWN:
                    names = setters.setdefault(place_of(key, known), set())
                    names.add(_setter(origin))
    return photos, setters


def _setter(origin: str) -> str:
    if origin.startswith("data"):
        return "the data"
    file, _, part = origin.partition(": ")
    return as_code(file) if part else f"the key {as_code(origin)}"
