"""Prints sentences, lists and tables on standard output."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, JustifyMethod
from rich.markup import escape
from rich.table import Table

from keras_dml.wording import filled

output = Console(emoji=False)


def say(sentence: str) -> None:
    """Prints a line as it is, however long."""
    output.print(sentence, highlight=False, markup=False, soft_wrap=True)


def tell(sentence: str) -> None:
    """Prints a sentence, wrapped at the width of a terminal."""
    say(filled(sentence, output.width) if output.is_terminal else sentence)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else escape(str(value))


def _is_number(value: Any) -> bool:
    """Returns whether a cell begins with a number, as intervals do."""
    return bool(re.match(r"[+-]?\d[\d,]*(\.\d+)?(?= |$)", str(value)))


def print_groups(groups: Mapping[str, Sequence[tuple[str, str]]]) -> None:
    """Prints names with a sentence each, in groups, in 80 columns.

    Args:
        groups: Maps the title of each group to its names and sentences.
    """
    for title, lines in groups.items():
        say(filled(title))
        indent = max(len(name) for name, _ in lines) + 4
        for name, sentence in lines:
            first = f"  {name}".ljust(indent)
            say(filled(sentence, first=first, indent=" " * indent))
        say("")


def print_facts(facts: Mapping[str, str]) -> None:
    """Prints each text with its name, in 80 columns; skips empty texts."""
    for name, text in facts.items():
        if text:
            say(filled(text, first=f"{name}: ", indent="  "))


def print_rows(title: str, rows: list[dict[str, Any]]) -> None:
    """Prints dicts with the same keys as a table, below its title."""
    tell(title)
    table = Table(header_style="bold cyan")
    for column, value in rows[0].items():
        side: JustifyMethod = "right" if _is_number(value) else "left"
        # Fold long text, do not cut it: users copy it from narrow windows.
        table.add_column(column, overflow="fold", justify=side)
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    output.print(table)
