"""Recipes: everything that defines a training run except the data.

A recipe is a YAML file. `about`, `paper` and `expected` say what it is, where
it comes from and what was reported there; `backbone` is the network of the
paper. `group`, `use` and `cost` say what it is good for, `measured` what it
reached here. Each other part is a partial configuration:

- `common`: settings that all sections share.
- `default`: settings for data and backbones that no paper used;
  `pretrained`: changes to them if the backbone starts from weights.
- `sources`: one section for each data set of the paper; `published`:
  settings that these share.
- `presets`: named changes, such as `authors` or `no_max`.

Any of these may hold `backbones` and `sources`: changes to it for one network
or one data set, by name; these may hold them again.

A recipe with `base: NAME`, or a list of names, sets only what differs from
these bases; later bases win. A recipe whose name starts with `_` serves only
as a base and is not listed.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_dml.backbone_facts import known_backbones
from keras_dml.checks import one_of
from keras_dml.config.recipe import Recipe, sections_of
from keras_dml.config.validation import validated
from keras_dml.config.values import Number, Section
from keras_dml.config.yaml_files import (
    is_path,
    packaged_names,
    read_named,
)
from keras_dml.errors import UsageError

# From scratch, best on validation classes of Omniglot; from pretrained weights,
# best on those of four sets of photos: docs/lab/photos.md.
DEFAULT_RECIPE, PRETRAINED_RECIPE = "norm_softmax", "proxy_anchor"
DEFAULTS = {
    DEFAULT_RECIPE: "from scratch",
    PRETRAINED_RECIPE: "with a pretrained network",
}

# What recipes are good for, in the order in which they are listed.
GROUPS = {
    "general": "For most data: a vector for each class",
    "many": "For very many classes: a margin, and a sample of the vectors",
    "pairs": "Without vectors of classes: the pairs of a batch",
    "views": "Without labels: two random views of each image",
    "heated": "To study the temperature: Heated-Up Softmax",
    "study": "To compare with: earlier and experimental losses",
    "": "Others",
}

_TEXTS = ("about", "paper", "expected", "backbone", "group", "use", "cost")
_Part = dict[str, Any] | None


class _File(Section):
    """The content of the file of a recipe; its settings are checked later."""

    base: str | list[str] | None = None
    about: str | None = None
    paper: str | None = None
    expected: str | None = None
    backbone: str | None = None
    group: str | None = None
    use: str | None = None
    cost: str | None = None
    measured: dict[str, Number] | None = None
    common: _Part = None
    default: _Part = None
    pretrained: _Part = None
    published: _Part = None
    # One section for each name.
    sources: dict[str, _Part] | None = None
    presets: dict[str, _Part] | None = None


PARTS = tuple(
    key
    for key in _File.model_fields
    if key not in (*_TEXTS, "base", "measured")
)


def recipe_names() -> list[str]:
    """Returns the sorted names of the recipes that come with the package."""
    return [
        name for name in packaged_names("recipes") if not name.startswith("_")
    ]


def load_recipe(name: str | os.PathLike[str]) -> Recipe:
    """Loads a recipe by its name or from a YAML file.

    Args:
        name: The name of a recipe that comes with the package, or a path that
            ends in `.yaml`.

    Raises:
        UsageError: If the recipe or one it builds on does not exist, or a
            file has an unknown key.

    Example:

    >>> load_recipe("hbn").bases
    ('_base', '_proxies', '_heated_up', 'bn', '_heated')
    """
    name = os.fspath(name)
    contents: dict[str, dict[str, Any]] = {}
    _collect(name, Path(), (), contents)
    files = [*contents.items()]
    texts = {
        key: next((c[key] for _, c in reversed(files) if c.get(key)), "")
        for key in _TEXTS
    }
    one_of("group", texts["group"], GROUPS)
    for of, content in files:
        _check_networks(_label(of), content)
    return Recipe(
        name=_label(name),
        **texts,
        measured=files[-1][1].get("measured") or {},
        bases=tuple(_label(known) for known, _ in files[:-1]),
        sources=_keys(files, "sources"),
        presets=_keys(files, "presets"),
        _files=tuple((_label(known), content) for known, content in files),
    )


def _check_networks(name: str, content: Mapping[str, Any]) -> None:
    """Raises if a recipe has changes for a network that does not exist."""
    known = known_backbones()
    for part in PARTS:
        named = part in ("sources", "presets")
        for key in (content.get(part) or ()) if named else ("",):
            for section in sections_of(content, part, key):
                for kind, case in section.cases:
                    if kind == "backbones" and not case.startswith("hub:"):
                        one_of(f"backbones` of the recipe `{name}", case, known)


def _collect(
    name: str,
    folder: Path,
    below: tuple[str, ...],
    files: dict[str, dict[str, Any]],
) -> None:
    """Adds the content of a recipe to `files`, after that of its bases.

    Args:
        name: Name or path of the recipe.
        folder: The folder that a relative path starts from.
        below: Names, or whole paths, of the recipes that build on it.
        files: Contents by name, or by the whole path of a file; a recipe that
            is there is left out.
    """
    of = f"`base` of the recipe `{below[-1]}`" if below else "`recipe`"
    known = packaged_names("recipes") if below else recipe_names()
    content = read_named("recipes", name, known, of, folder)
    # Files of one name in two folders are two recipes.
    key = os.path.realpath(folder / name) if is_path(name) else name
    if key in below:
        raise UsageError(
            f"{of} must be a recipe that does not build on it. Received: "
            f"{name!r}, with which it builds on itself. Leave it out."
        )
    if key in files:
        return
    folder = (folder / name).parent
    bases = validated(_File, content, f"Recipe `{_label(name)}`: ").base or []
    for base in [bases] if isinstance(bases, str) else bases:
        _collect(base, folder, (*below, key), files)
    files[key] = content


def _label(name: str) -> str:
    return Path(name).stem if is_path(name) else name


def _keys(
    files: list[tuple[str, dict[str, Any]]], part: str
) -> tuple[str, ...]:
    names = [key for _, content in files for key in content.get(part) or ()]
    return tuple(dict.fromkeys(names))
