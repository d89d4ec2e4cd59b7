"""Prints results as one line, or as a title and a small table."""

import dataclasses
import html
from collections.abc import Mapping
from typing import Any

import numpy as np

from keras_dml.console import format_table

MAX_ROWS = 12


class Brief:
    """Gives a class a short `repr`, and a table in notebooks.

    A dataclass that inherits from it must set `repr=False`.
    """

    def _brief_title(self) -> str:
        """Returns one line; by default the fields of the dataclass."""
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = ", ".join(
            f"{field.name}={cell(getattr(self, field.name))}"
            for field in fields
        )
        return f"{type(self).__name__}({values})"

    def _brief_rows(self) -> list[dict[str, Any]]:
        """Returns the rows of the table; all have the same keys."""
        return []

    def _cells(self) -> list[list[str]]:
        rows = self._brief_rows()
        if not rows:
            return []
        lines = [[cell(value) for value in row.values()] for row in rows]
        if len(rows) > MAX_ROWS:
            more = [f"{len(rows) - MAX_ROWS} more"]
            lines[MAX_ROWS:] = [more + [""] * (len(lines[0]) - 1)]
        return [list(rows[0]), *lines]

    def __repr__(self) -> str:
        cells = self._cells()
        table = f"\n{format_table(cells)}" if cells else ""
        return self._brief_title() + table

    def _repr_html_(self) -> str:
        def line(texts: list[str], tag: str) -> str:
            inner = (f"<{tag}>{html.escape(text)}</{tag}>" for text in texts)
            return f"<tr>{''.join(inner)}</tr>"

        caption = f"<caption>{html.escape(self._brief_title())}</caption>"
        lines = [
            line(texts, "td" if number else "th")
            for number, texts in enumerate(self._cells())
        ]
        return f"<table>{caption}{''.join(lines)}</table>"


def cell(value: Any) -> str:
    """Formats a value in few characters, numbers with four digits.

    Example:

    >>> cell(0.123456), cell(np.zeros((2, 3))), cell({"a": 1})
    ('0.1235', 'float64 array (2, 3)', '1 entry')
    """
    if isinstance(value, float | np.floating):
        size = abs(float(value))
        plain = size == 0 or 1e-3 <= size < 1e5
        return f"{value:.4f}" if plain else f"{value:.4g}"
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array {value.shape}"
    if isinstance(value, Mapping | list | tuple):
        return f"{len(value):,} entr{'y' if len(value) == 1 else 'ies'}"
    if isinstance(value, Brief):
        return value._brief_title()
    return str(value)
