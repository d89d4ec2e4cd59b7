"""Finds the public names of every package by reading its source.

Nothing of the library is imported, so that the pages are written without
TensorFlow. `tests/docs/test_site.py` compares the result with the packages as
Python imports them.
"""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The packages in the order of the site, and what each page shows first.
PACKAGES = (
    "keras_dml",
    "keras_dml.losses",
    "keras_dml.miners",
    "keras_dml.layers",
    "keras_dml.models",
    "keras_dml.optimizers",
    "keras_dml.callbacks",
    "keras_dml.metrics",
    "keras_dml.regularizers",
    "keras_dml.initializers",
    "keras_dml.data",
    "keras_dml.evaluation",
    "keras_dml.embeddings",
    "keras_dml.embed",
    "keras_dml.search",
    "keras_dml.report",
    "keras_dml.push",
    "keras_dml.export",
    "keras_dml.config",
    "keras_dml.run",
    "keras_dml.comparison",
    "keras_dml.tuning",
    "keras_dml.distribute",
    "keras_dml.ops",
)
LOSSES = "keras_dml.losses"
LONGEST = 12

# Names that guides and docstrings send to, in modules that their package does
# not import, since they need TensorFlow or an extra, or are options.
MORE = {
    "keras_dml": (
        "keras_dml.fit_options:TrainingOptions",
        "keras_dml.fit_options:FitOptions",
        "keras_dml.errors:UsageError",
        "keras_dml.errors:RunError",
    ),
    "keras_dml.models": (
        "keras_dml.models.weights:build_with_weights",
        "keras_dml.models.conversion.convert:convert_weights",
        "keras_dml.models.conversion.convert:Conversion",
    ),
    "keras_dml.data": (
        "keras_dml.data.augmentation:Augmentation",
        "keras_dml.data.pipeline:train_batches",
        "keras_dml.data.pipeline:evaluation_batches",
        "keras_dml.data.image_fit:ImageFit",
        "keras_dml.data.prepare:prepare",
        "keras_dml.data.prepare:Check",
        "keras_dml.data.facts:known_datasets",
        "keras_dml.data.facts:dataset_facts",
        "keras_dml.data.facts:DatasetFacts",
    ),
    "keras_dml.evaluation": (
        "keras_dml.evaluation.index.registry:build_index",
    ),
    "keras_dml.embed": (
        "keras_dml.embed.local:embed_source",
        "keras_dml.embed.local:Embedded",
        "keras_dml.embed.beam:EmbedImages",
        "keras_dml.embed.beam:ReadImages",
    ),
    "keras_dml.search": (
        "keras_dml.search.search:search_run",
        "keras_dml.search.search:SearchResult",
        "keras_dml.search.search:Answer",
        "keras_dml.search.search:Neighbor",
        "keras_dml.search.picture:draw_answers",
    ),
    "keras_dml.config": (
        "keras_dml.config.plans:load_plan",
        "keras_dml.config.plans:parse_plan",
        "keras_dml.config.plans:plan_names",
        "keras_dml.config.plan_sections:PlanConfig",
        "keras_dml.config.tuning_section:TuningConfig",
    ),
    "keras_dml.run": (
        "keras_dml.run.evaluate:evaluate_run",
        "keras_dml.run.folder:RunFolder",
        "keras_dml.run.history:History",
    ),
    "keras_dml.comparison": (
        "keras_dml.comparison.comparison:Comparison",
        "keras_dml.comparison.plans:PlanOptions",
    ),
    "keras_dml.tuning": ("keras_dml.tuning.loop:tune",),
}


@dataclass(frozen=True)
class Symbol:
    """A public name.

    Attributes:
        path: What the page calls it, such as `"keras_dml.losses.Circle"`.
        module: The module that defines it.
        name: Its name there.
        about: The first line of its docstring; empty if it has none.
    """

    path: str
    module: str
    name: str
    about: str

    @property
    def home(self) -> str:
        """The path of its definition."""
        return f"{self.module}.{self.name}"

    @property
    def package(self) -> str:
        """The package or module that it is imported from."""
        return self.path.rpartition(".")[0]


@functools.cache
def symbols(package: str) -> tuple[Symbol, ...]:
    """Returns the public names of a package, and `MORE` of it."""
    found = _losses() if package == LOSSES else {}
    found |= _exported(package)
    exported = [_symbol(f"{package}.{name}", *found[name]) for name in found]
    exported.sort(key=lambda one: (one.name.isupper(), one.name.lower()))
    homes = {one.home for one in exported}
    more = [one.split(":") for one in MORE.get(package, ())]
    return (
        *exported,
        *(
            _symbol(f"{module}.{name}", module, name)
            for module, name in more
            if f"{module}.{name}" not in homes
        ),
    )


@functools.cache
def all_symbols() -> dict[str, Symbol]:
    """Returns the public names of all packages by path."""
    return {one.path: one for name in PACKAGES for one in symbols(name)}


@functools.cache
def tree(module: str) -> ast.Module:
    """Parses a module of the library."""
    return ast.parse(source(module).read_text(encoding="utf-8"))


def source(module: str) -> Path:
    """Returns the file of a module; `export/` and `configs/` lie at the top."""
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in ("export", "configs"):
        parts = parts[1:]
    place = ROOT.joinpath(*parts)
    file = place.with_suffix(".py")
    return file if file.is_file() else place / "__init__.py"


def docstring(module: str, name: str = "") -> str:
    """Returns the docstring of a module or of a name in it."""
    node = definition(module, name)[1] if name else tree(module)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    return (isinstance(node, documented) and ast.get_docstring(node)) or ""


def _symbol(path: str, module: str, name: str) -> Symbol:
    module, node = definition(module, name)
    assert node is not None, f"{path} is not defined in {module}"
    return Symbol(path, module, name, docstring(module, name).split("\n")[0])


def _exported(package: str) -> dict[str, tuple[str, str]]:
    """Maps the names that a package imports to their modules and names."""
    listed: set[str] | None = None
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree(package)):
        if isinstance(node, ast.ImportFrom) and node.module != "keras_dml":
            if (node.module or "").startswith("keras_dml."):
                for one in node.names:
                    found[one.asname or one.name] = (node.module, one.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = getattr(node, "targets", None) or [node.target]
            names = [ast.unparse(target) for target in targets]
            if isinstance(node.value, ast.Dict) and names == ["_HOMES"]:
                found |= ast.literal_eval(node.value)
            elif names == ["__all__"] and package != LOSSES:
                listed = set(ast.literal_eval(node.value))
    return {
        name: home
        for name, home in found.items()
        if not name.startswith("_")
        and (listed is None or name in listed)
        and definition(*home)[1] is not None
    }


def _losses() -> dict[str, tuple[str, str]]:
    """Returns the losses and their functions, as `losses/registry.py` does."""
    files = sorted(source(LOSSES).parent.glob("*.py"))
    modules = [f"{LOSSES}.{one.stem}" for one in files if one.stem[0] != "_"]
    classes = {"Loss"}
    found = {}
    for _ in range(3):  # a loss may derive from one of a later file
        for module in modules:
            for node in tree(module).body:
                name = getattr(node, "name", "")
                bases = map(ast.unparse, getattr(node, "bases", ()))
                if isinstance(node, ast.ClassDef) and {*bases} & classes:
                    classes.add(name)
                is_loss = isinstance(node, ast.ClassDef) and name in classes
                if is_loss or name.endswith("_loss"):
                    found[name] = (module, name)
    return found


def loss_pages() -> Iterator[tuple[str, str, list[Symbol]]]:
    """Yields the file of each loss: its name, its title, its public names."""
    by_file: dict[str, list[Symbol]] = {}
    for one in symbols(LOSSES):
        if is_registry(one):
            continue
        by_file.setdefault(one.module.rpartition(".")[2], []).append(one)
    for key in sorted(by_file, key=lambda one: (one == "base", one)):
        names = sorted(by_file[key], key=lambda one: one.name[0].islower())
        title = "Base classes" if key == "base" else names[0].name
        yield key, title, names


def is_registry(one: Symbol) -> bool:
    """Returns whether a name of `keras_dml.losses` is no loss."""
    return one.module == f"{LOSSES}.registry"


def constant_of(one: Symbol) -> str:
    """Returns the source of a constant with the comment above it.

    Returns:
        At most `LONGEST` lines; an empty text for a class or a function.
    """
    node = definition(one.module, one.name)[1]
    if not isinstance(node, ast.Assign | ast.AnnAssign):
        return ""
    lines = source(one.module).read_text(encoding="utf-8").splitlines()
    first, last = node.lineno - 1, node.end_lineno or node.lineno
    while lines[first - 1].startswith("#"):
        first -= 1
    shown = lines[first:last]
    return "\n".join(
        shown if len(shown) <= LONGEST else [*shown[:LONGEST], "    ..."]
    )


def definition(module: str, name: str) -> tuple[str, ast.stmt | None]:
    """Returns the module that defines a name, and its node there."""
    for node in ast.walk(tree(module)):
        if getattr(node, "name", None) == name and node in tree(module).body:
            return module, node
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = getattr(node, "targets", None) or [node.target]
            for target in targets:
                if name in ast.unparse(target).strip("()").split(", "):
                    return module, node
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                known = source(node.module).is_file()
                if known and name == (one.asname or one.name):
                    return definition(node.module, one.name)
    return module, None
