"""The arguments of `fit` that are settings of a run."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_dml.config.yaml_files import MOST_CHARACTERS
from keras_dml.errors import UsageError
from keras_dml.files import read_some
from keras_dml.fit_options import options_that_set

# The key, or keys, of the settings that each argument sets.
FLAGS = {
    "seed": "seed",
    "backbone": "model.backbone",
    "weights": "model.weights",
    **options_that_set(),
}
EPOCHS = FLAGS["epochs"]


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
    if "model.matryoshka" in given:
        given["model.matryoshka"] = list(given["model.matryoshka"])
    classes = given.get("data.train_classes")
    if isinstance(classes, str | os.PathLike):
        given["data.train_classes"] = _listed_classes(Path(classes))
    elif classes is not None:
        given["data.train_classes"] = list(classes)
    for key, value in given.items():
        *above, last = key.split(".")
        section = flags
        for part in above:
            section = section.setdefault(part, {})
        is_path = isinstance(value, os.PathLike)
        section[last] = os.fspath(value) if is_path else value
    return flags


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
    return names
