"""Turns docstrings into Markdown, and tells griffe the names of the losses.

The sections of a docstring become bold titles, their entries definitions,
`>>>` lines a block of code. The text itself is Markdown already.
"""

import re
import textwrap
from typing import Any

from site_pages.symbols import LOSSES, PACKAGES, all_symbols, symbols

TITLES = {
    "Args": "Arguments",
    "Call arguments": "Call arguments",
    "Attributes": "Attributes",
    "Returns": "Returns",
    "Yields": "Yields",
    "Raises": "Raises",
    "Input shape": "Input shape",
    "Output shape": "Output shape",
    "Modes": "Modes",
    "Example": "Example",
    "Reference": "Reference",
}
ENTRIES = ("Args", "Call arguments", "Attributes", "Raises")
_TITLE = re.compile(rf"({'|'.join(TITLES)}):$")
_ENTRY = re.compile(r"^(\S[^:\n]*): (.+?)(?=\n\S|\Z)", re.DOTALL | re.MULTILINE)
_FORMULA = re.compile(r"`[^`]+`[.,:;]?")
_CODE = re.compile(r"(?<![`\[])`(keras_dml[\w.]*)`(?!`)")
_FENCE = re.compile(r"^ *(```|~~~)")


def to_markdown(text: str) -> str:
    """Returns a docstring as Markdown."""
    lines, done = text.splitlines(), []
    while lines:
        title = _TITLE.fullmatch(lines[0])
        if title is None:
            done.append(lines.pop(0))
            continue
        lines.pop(0)
        body = []
        while lines and (not lines[0] or lines[0].startswith("    ")):
            body.append(lines.pop(0))
        done += ["", f"**{TITLES[title[1]]}**", ""]
        done += [_section(title[1], textwrap.dedent("\n".join(body))), ""]
    return linked(_blocks("\n".join(done)))


def _section(title: str, body: str) -> str:
    """Returns the body of a section; entries become definitions."""
    entries = _ENTRY.findall(body) if title in ENTRIES else []
    if not entries:
        return body.strip("\n")
    return "\n\n".join(
        f"`{name.strip('`')}`\n:   "
        + textwrap.indent(textwrap.dedent(_joined(about)), "    ").strip()
        for name, about in entries
    )


def _joined(about: str) -> str:
    """Returns the text of an entry, whose first line is not indented."""
    first, _, rest = about.strip().partition("\n")
    return f"{first}\n{textwrap.dedent(rest)}"


def _blocks(text: str) -> str:
    """Fences the `>>>` examples and the formulas that stand by themselves."""
    parts, inside = [], False
    for part in re.split(r"\n{2,}", text):
        lines = part.splitlines()
        if part.startswith(">>>"):
            part = f"```pycon\n{part}\n```"
        elif not inside and all(map(_FORMULA.fullmatch, lines)) and lines:
            plain = "\n".join(line.strip("`.,:;") for line in lines)
            part = f"```text\n{plain}\n```"
        if len(re.findall(r"^```", part, re.MULTILINE)) % 2:
            inside = not inside
        parts.append(part)
    return "\n\n".join(parts)


def linked(text: str) -> str:
    """Links names of the library that stand in code to their reference."""
    known, lines, fenced = all_symbols(), [], False
    for line in text.split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.startswith("#"):
            line = _CODE.sub(
                lambda found: (
                    f"[{found[0]}][{found[1]}]"
                    if found[1] in known
                    else found[0]
                ),
                line,
            )
        lines.append(line)
    return "\n".join(lines)


def import_line(home: str) -> str:
    """Returns how to import a name that its package does not import."""
    module, _, name = home.rpartition(".")
    if module in PACKAGES or home not in all_symbols():
        return ""
    return f"`from {module} import {name}`\n\n"


try:
    import griffe
except ImportError:  # the tests read the pages without it
    pass
else:

    class LibraryDocstrings(griffe.Extension):
        """Prepares the objects that mkdocstrings shows."""

        def on_object(self, *, obj: Any, **_: Any) -> None:
            """Rewrites a docstring."""
            if obj.docstring:
                text = to_markdown(obj.docstring.value)
                obj.docstring.value = import_line(obj.path) + text

        def on_package(self, *, pkg: Any, **_: Any) -> None:
            """Adds the losses, which their package finds when it is used."""
            losses = pkg[LOSSES.partition(".")[2]]
            for one in symbols(LOSSES):
                name = one.path.rpartition(".")[2]
                if name not in losses.members:
                    losses.set_member(name, griffe.Alias(name, one.home))
