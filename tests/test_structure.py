"""The packages import each other in one direction, in functions too."""

import ast
import graphlib
from collections import defaultdict

from tests.conftest import ROOT

# Each may import itself and what stands before it.
ORDER = (
    "modules",  # those beside the packages, without the front door
    "distribute",
    "ops",
    "initializers",
    "regularizers",
    "optimizers",
    "layers",
    "miners",
    "losses",
    "metrics",
    "embeddings",
    "evaluation",
    "data",
    "config",
    "callbacks",
    "models",
    "run",
    "export",
    "embed",
    "report",
    "push",
    "search",
    "tuning",
    "comparison",
    "api",
    "cli",
)


def modules():
    """Maps the name of every module to its file."""
    found = {}
    for folder, start in (("keras_dml", ()), ("export", ("keras_dml",))):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if any(part.is_symlink() for part in (path, *path.parents)):
                continue
            parts = (*start, *path.relative_to(ROOT).with_suffix("").parts)
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(path):
    """Yields what a file imports, also inside functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    only_for_types = {
        one
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and ast.unparse(node.test) == "TYPE_CHECKING"
        for one in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in only_for_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def graph():
    """Maps each module to the modules of the package that it imports."""
    known = modules()
    found = defaultdict(set)
    for name, path in known.items():
        for imported in imports(path):
            target = imported
            while target and target not in known:
                target = target.rpartition(".")[0]
            if target.startswith("keras_dml.") and target != name:
                found[name].add(target)
    return found


def room(module):
    part = f"{module}.".split(".")[1]
    return part if part in ORDER else "modules"


def test_every_package_has_a_place():
    packages = {name.split(".")[1] for name in modules() if name.count(".") > 1}
    assert packages <= set(ORDER)


def test_no_circle():
    """A package is its `__init__`, which may gather its own modules."""
    arrows = {
        name: {
            target
            for target in targets
            if not (
                name.startswith(f"{target}.") or target.startswith(f"{name}.")
            )
        }
        for name, targets in graph().items()
    }
    assert list(graphlib.TopologicalSorter(arrows).static_order())


def test_no_arrow_runs_back_up():
    places = {name: place for place, name in enumerate(ORDER)}
    front = {"keras_dml", "keras_dml.__main__"}
    back = [
        f"{name} -> {target}"
        for name, targets in graph().items()
        for target in targets
        if name not in front and places[room(target)] > places[room(name)]
    ]
    assert back == []
