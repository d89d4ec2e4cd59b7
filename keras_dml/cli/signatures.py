"""Reads the parameters of the library's functions from their source.

Importing the modules would load Keras and TensorFlow, and `--help` has to
answer at once.
"""

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_SECTION = re.compile(r"^(?:Args|Attributes):\n(.+?)(?:\n\n|\Z)", re.S | re.M)
_ENTRY = re.compile(r"^    (\w+): (.+?)(?=\n    \S|\Z)", re.S | re.M)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function, or one field of a class of options.

    Attributes:
        name: Its name.
        annotation: The source text of its annotation, without `| None`.
        about: The first sentence of the docstring on it.
        default: Its default in the words of the docstring, a value without
            quotes; empty for `None`.
        required: Whether it has no default.
        positional: Whether it can be given without its name.
        group: What the docstring of its class begins with; `None` for a
            parameter of a function.
    """

    name: str
    annotation: str
    about: str
    default: str
    required: bool
    positional: bool
    group: str | None


@functools.cache
def read_parameters(target: str) -> tuple[Parameter, ...]:
    """Reads the parameters of a function, or the fields of a class.

    Args:
        target: A module and a name in it, such as `"keras_dml.api:fit"`.

    Example:

    >>> read_parameters("keras_dml.data.prepare:prepare")[2].default
    'False'
    """
    module, wanted = target.split(":")
    text = _source(module).read_text(encoding="utf-8")
    # Parsing whole modules would take half of the time until `--help` answers.
    own = re.search(
        rf"^(?:def|class) {wanted}\b.*?(?=^[\w@#]|\Z)", text, re.S | re.M
    )
    assert own is not None
    (node,) = ast.parse(own[0]).body
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    docstring = ast.get_docstring(node) or ""
    section = _SECTION.search(docstring)
    line = re.split(r"[.;]", docstring)[0].replace("`", "")
    group = line if isinstance(node, ast.ClassDef) else None
    texts = dict(_ENTRY.findall(section[1] if section else ""))
    return tuple(
        Parameter(
            name,
            ast.unparse(_type(annotation)).removesuffix(" | None"),
            *_about_and_default(texts.get(name, "")),
            required,
            positional,
            group,
        )
        for name, annotation, required, positional in _declared(node)
    )


def _source(module: str) -> Path:
    """Returns the file of a module, found without importing its package."""
    top, package, *inner = module.split(".")
    found = find_spec(f"{top}.{package}")
    assert found is not None and found.origin is not None
    file = Path(found.origin)
    return file.parent.joinpath(*inner).with_suffix(".py") if inner else file


def _declared(
    node: ast.FunctionDef | ast.ClassDef,
) -> Iterator[tuple[str, ast.expr, bool, bool]]:
    """Yields name, annotation, whether required, and whether positional."""
    if isinstance(node, ast.ClassDef):
        for line in node.body:
            if isinstance(line, ast.AnnAssign):
                yield ast.unparse(line.target), line.annotation, False, False
        return
    parameters = [*node.args.args, *node.args.kwonlyargs]
    num_positional = len(node.args.args)
    num_required = num_positional - len(node.args.defaults)
    for place, one in enumerate(parameters):
        assert one.annotation is not None
        required, positional = place < num_required, place < num_positional
        yield one.arg, one.annotation, required, positional


def _type(annotation: ast.expr) -> ast.expr:
    """Returns an annotation without what `Annotated` adds to it."""
    match annotation:
        case ast.Subscript(ast.Name("Annotated"), ast.Tuple([first, *_])):
            return first
    return annotation


def _about_and_default(text: str) -> tuple[str, str]:
    """Returns the first sentence, and the default."""
    line = " ".join(text.split())
    about = re.split(r"(?<=\.) (?=[A-Z])", line)[0]
    default = line.partition(" Defaults to ")[2].rstrip(".")
    default = re.sub(r"^(`None`|none)(, (which is )?|$)", "", default)
    return about, re.sub(r'^`"?([^`"]*)"?`', r"\1", default)
