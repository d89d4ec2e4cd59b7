"""Recipes: all that defines a training run but the data.

A recipe file has these parts; each but `paper` is a partial configuration:

- `paper`, `expected`: where it comes from and what was reported there.
- `common`: what all its sections share.
- `default`: settings for data and backbones that no paper used;
  `pretrained`: what changes there when the backbone starts from weights.
- `sources`: one section per data set of the paper.
- `presets`: named changes on top, such as `authors` or `no_max`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keras_dml.config.packaged import packaged_names, read_packaged
from keras_dml.config.yaml_files import read_yaml
from keras_dml.errors import UsageError
from keras_dml.naming import nearest

# Best on validation classes of Omniglot and Grocery: docs/lab/results.md.
DEFAULT_RECIPE = "norm_softmax"

_KEYS = {
    "paper",
    "expected",
    "backbone",
    "common",
    "default",
    "pretrained",
    "sources",
    "presets",
}


@dataclass(frozen=True)
class Recipe:
    """One recipe file, parsed but not yet resolved for a data set.

    Attributes:
        name: The recipe's name, or the stem of its file.
        paper: One line: authors, year, title.
        expected: One line: the number that the paper reports.
        backbone: The network of the paper.
        common, default, pretrained: Partial configurations.
        sources, presets: Partial configurations by name.
    """

    name: str
    paper: str
    expected: str
    backbone: str
    common: dict[str, Any]
    default: dict[str, Any]
    pretrained: dict[str, Any]
    sources: dict[str, dict[str, Any]]
    presets: dict[str, dict[str, Any]]


def recipe_names() -> list[str]:
    """Names of the recipes that come with the package, sorted."""
    return packaged_names("recipes")


def load_recipe(name: str) -> Recipe:
    """Loads a recipe by its name or from a YAML file.

    Args:
        name: The name of a recipe that comes with the package, or a path that
            ends in `.yaml`.

    Raises:
        UsageError: If there is no such recipe, or its file has an unknown key.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"There is no recipe file {name}.")
    else:
        names = recipe_names()
        if name not in names:
            raise UsageError(
                f"`recipe` must be a known name or a YAML file. Received: "
                f"{name!r}. Nearest: {nearest(name, names)}. "
                "`keras-dml recipes` lists them all."
            )
        return _parse(name, read_packaged("recipes", name))
    return _parse(path.stem, read_yaml(path))


def _parse(name: str, content: dict[str, Any]) -> Recipe:
    for key in content:
        if key not in _KEYS:
            raise UsageError(
                f"Recipe `{name}`: unknown key `{key}`. Nearest: "
                f"{nearest(key, sorted(_KEYS))}."
            )
    return Recipe(
        name=name,
        paper=content.get("paper", ""),
        expected=content.get("expected", ""),
        backbone=content.get("backbone", ""),
        common=content.get("common") or {},
        default=content.get("default") or {},
        pretrained=content.get("pretrained") or {},
        sources=content.get("sources") or {},
        presets=content.get("presets") or {},
    )
