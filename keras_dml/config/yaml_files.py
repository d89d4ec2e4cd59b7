"""Reads and writes YAML of plain values: what JSON has, and nothing else.

`1e-3` is read as a number; dates, `010` and `1:30` are read as text. A small
file can stand for gigabytes, or nest without end: what is larger than any
configuration is refused before its values are made.
"""

import functools
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from keras_dml.errors import UsageError
from keras_dml.naming import nearest, shortened, shown

# The largest plan that comes with the package has 20,000 characters, and its
# values nest five levels; lists of classes may have some 10,000 names.
MOST_CHARACTERS = 1_000_000
MOST_VALUES = 50_000
DEEPEST = 32
LONGEST_NUMBER = 100

_TAG = "tag:yaml.org,2002:"
_NOT_PLAIN = tuple(
    f"{_TAG}{name}" for name in ("timestamp", "binary", "set", "omap", "pairs")
)
# YAML 1.1 reads `1e-3` as text, `010` as 8 and `1:30` as 90.
_INTEGER = r"[-+]?(0|[1-9][\d_]*|0x[\da-fA-F]+)"
_FLOAT = (
    r"[-+]?(\.\d+|\d[\d_]*\.\d*)([eE][-+]?\d+)?|[-+]?\d[\d_]*[eE][-+]?\d+"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


class _Loader(yaml.SafeLoader):
    """Makes plain values; every mistake in them is a `yaml.YAMLError`."""

    yaml_implicit_resolvers = {
        first: [
            rule
            for rule in rules
            if rule[0].removeprefix(_TAG) not in ("timestamp", "int", "float")
        ]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    yaml_constructors = {
        **yaml.SafeLoader.yaml_constructors,
        **dict.fromkeys(_NOT_PLAIN, yaml.SafeLoader.construct_undefined),
    }

    def get_single_node(self):
        root = super().get_single_node()
        # Counts an alias as often as it is used, so that anchors of anchors
        # end here.
        waiting = [] if root is None else [(root, 1)]
        count = 0
        while waiting:
            node, depth = waiting.pop()
            count += 1
            if depth > DEEPEST:
                raise RecursionError
            if count > MOST_VALUES:
                raise _mistake(f"it has more than {MOST_VALUES:,} values", node)
            parts = [] if isinstance(node, yaml.ScalarNode) else node.value
            if isinstance(node, yaml.MappingNode):
                _check_keys(node)
                parts = [part for pair in parts for part in pair]
            waiting += [(part, depth + 1) for part in parts]
        return root

    def construct_object(self, node, deep=False):
        try:
            return super().construct_object(node, deep)
        except (AttributeError, LookupError, ValueError) as error:
            kind = node.tag.removeprefix(_TAG)
            raise _mistake(f"{shown(node.value)} is no {kind}", node) from error

    def construct_scalar(self, node):
        text = super().construct_scalar(node)
        number = node.tag in (f"{_TAG}int", f"{_TAG}float")
        if number and len(text) > LONGEST_NUMBER:
            raise _mistake(f"a number has {len(text):,} characters", node)
        # Neither a path nor a terminal takes these.
        if re.search("[\0\ud800-\udfff]", text):
            raise _mistake(f"{shown(text)} holds an invalid character", node)
        return text


class _Dumper(yaml.SafeDumper):
    """Quotes texts that are numbers here or in YAML 1.1."""


for _name, _text in (("int", _INTEGER), ("float", _FLOAT)):
    _pattern = re.compile(f"^({_text})$", re.ASCII)
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(
            f"{_TAG}{_name}", _pattern, list("-+.0123456789")
        )


def _mistake(reason: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.MarkedYAMLError(problem=reason, problem_mark=node.start_mark)


def _check_keys(node: yaml.MappingNode) -> None:
    """Raises if a key of a mapping is there twice: one value would be lost."""
    seen = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value != "<<":
            if key.value in seen:
                raise _mistake(
                    f"the key {shown(key.value)} is there twice", key
                )
            seen.add(key.value)


def parse_yaml(text: str, source: str = "The text") -> Any:
    """Parses one YAML document of plain values.

    Args:
        text: The document.
        source: What holds the text, for the error. Defaults to `"The text"`.

    Raises:
        UsageError: If the text is not valid YAML, holds other than plain
            values, or is larger or nests deeper than any configuration.
    """
    if len(text) > MOST_CHARACTERS:
        raise UsageError(
            f"{source} must have at most {MOST_CHARACTERS:,} characters. "
            f"Received: {len(text):,}"
        )
    try:
        return yaml.load(text, Loader=_Loader)
    except RecursionError:
        reason = f"it nests deeper than {DEEPEST} levels"
    except yaml.MarkedYAMLError as error:
        reason = shortened(error.problem or error.context or "")
        if error.problem_mark is not None:
            mark = error.problem_mark
            reason += f" (line {mark.line + 1}, column {mark.column + 1})"
    except yaml.YAMLError as error:
        reason = shortened(str(error).replace("\n", ""))
    except (ValueError, OverflowError):
        reason = "it holds an escape that is no character"
    raise UsageError(f"{source} is not valid YAML: {reason}.")


def read_yaml(path: Path) -> dict[str, Any]:
    """Reads a YAML file that holds a mapping.

    Raises:
        UsageError: If the file cannot be read, is not valid YAML or holds
            something else.
    """
    try:
        with open(path, encoding="utf-8") as file:
            # One more than is allowed, for a file may be of any size.
            text = file.read(MOST_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid YAML: {error}.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    value = parse_yaml(text, str(path))
    if not isinstance(value, dict):
        raise UsageError(
            f"{path} must hold a mapping of keys to values. "
            f"Received: {type(value).__name__}"
        )
    return value


def dump_yaml(value: dict[str, Any]) -> str:
    """Returns a mapping as YAML, with the keys in their order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def packaged_names(kind: str) -> list[str]:
    """Returns the sorted names of the packaged files of one kind.

    Args:
        kind: `"recipes"` or `"plans"`.
    """
    return list(_packaged(kind))


@functools.cache
def _packaged(kind: str) -> tuple[str, ...]:
    folder = resources.files("keras_dml.configs") / kind
    files = (item.name for item in folder.iterdir())
    stems = [Path(one).stem for one in files if one.endswith(".yaml")]
    return tuple(sorted(stems))


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
