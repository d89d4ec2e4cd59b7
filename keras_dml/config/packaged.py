"""YAML files that come with the package, by name."""

from importlib import resources
from pathlib import Path
from typing import Any

from keras_dml.config.yaml_files import read_yaml


def packaged_names(kind: str) -> list[str]:
    """Names of the files of one kind, `recipes` or `plans`, sorted."""
    folder = resources.files("keras_dml.configs") / kind
    return sorted(
        Path(item.name).stem
        for item in folder.iterdir()
        if item.name.endswith(".yaml")
    )


def read_packaged(kind: str, name: str) -> dict[str, Any]:
    """The content of one of them."""
    folder = resources.files("keras_dml.configs") / kind
    with resources.as_file(folder / f"{name}.yaml") as path:
        return read_yaml(path)
