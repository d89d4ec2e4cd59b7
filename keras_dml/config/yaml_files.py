"""Reads and writes YAML; floats such as `1e-3` are read as numbers."""

import functools
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from keras_dml.errors import UsageError
from keras_dml.naming import nearest


class _Loader(yaml.SafeLoader):
    """Reads `1e-3` as a number; YAML 1.1 reads it as text."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"),
    list("-+0123456789"),
)


def parse_yaml(text: str) -> Any:
    """Parses one YAML document."""
    return yaml.load(text, Loader=_Loader)


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a YAML file that holds a mapping.

    Raises:
        UsageError: If the file is not valid YAML or holds something else.
    """
    try:
        value = parse_yaml(Path(path).read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(value, dict):
        raise UsageError(
            f"{path} must hold a mapping of keys to values. "
            f"Received: {type(value).__name__}"
        )
    return value


def dump_yaml(value: dict[str, Any]) -> str:
    """Returns a mapping as YAML, with the keys in their order."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def packaged_names(kind: str) -> list[str]:
    """Returns the sorted names of the packaged files of one kind.

    Args:
        kind: `"recipes"` or `"plans"`.
    """
    folder = resources.files("keras_dml.configs") / kind
    return sorted(
        Path(item.name).stem
        for item in folder.iterdir()
        if item.name.endswith(".yaml")
    )


def read_named(
    kind: str,
    name: str,
    known: Sequence[str],
    what: str,
    folder: Path = Path(),
) -> dict[str, Any]:
    """Reads a packaged file by its name, or a YAML file by its path.

    Args:
        kind: `"recipes"` or `"plans"`.
        name: The name, or a path that ends in `.yaml`.
        known: The names to choose from.
        what: What has this name, for the error.
        folder: The folder that a relative path starts from. Defaults to the
            working directory.

    Raises:
        UsageError: If there is no such file, or it is not a valid one.
    """
    if is_path(name):
        if not (folder / name).is_file():
            raise UsageError(f"There is no {kind[:-1]} file {folder / name}.")
        return read_yaml(folder / name)
    if name not in known:
        raise UsageError(
            f"{what} must be a known name or a YAML file. Received: {name!r}. "
            f"Nearest: {nearest(name, known)}. `keras-dml {kind}` lists them "
            "all."
        )
    return read_packaged(kind, name)


def is_path(name: str) -> bool:
    """Returns whether a name is the path of a YAML file."""
    return name.endswith((".yaml", ".yml"))


@functools.cache
def read_packaged(kind: str, name: str) -> dict[str, Any]:
    """Reads one of the packaged files, see `packaged_names`."""
    folder = resources.files("keras_dml.configs") / kind
    with resources.as_file(folder / f"{name}.yaml") as path:
        return read_yaml(path)
