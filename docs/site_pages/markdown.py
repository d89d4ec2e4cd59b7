"""Small pieces of Markdown."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table; a cell may hold anything but a new line."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(str(text).split()))


def facts(values: Mapping[str, str]) -> str:
    """Returns a list of bold titles with their texts, without empty ones."""
    return "\n".join(
        f"- **{title}**: {text}" for title, text in values.items() if text
    )


def folded(title: str, code: str, language: str) -> str:
    """Returns a block of code that a click unfolds."""
    block = f"```{language}\n{code.rstrip()}\n```"
    indented = "\n".join(f"    {line}".rstrip() for line in block.splitlines())
    return f'??? note "{title}"\n\n{indented}'


def as_code(text: object) -> str:
    """Returns a text as inline code."""
    return f"`{text}`" if "`" not in str(text) else f"`` {text} ``"


def as_yaml(value: Any) -> str:
    """Returns a value as YAML has it."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_yaml, value))}]"
    if isinstance(value, dict):
        items = (f"{key}: {as_yaml(one)}" for key, one in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, float):
        return f"{value:.6g}" if value % 1 or value >= 1e6 else f"{value:.1f}"
    words = {None: "null", True: "true", False: "false", "": '""'}
    known = isinstance(value, str | bool) or value is None
    return words.get(value, str(value)) if known else str(value)


def page(*parts: str) -> str:
    """Joins the parts of a page that are not empty."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"
