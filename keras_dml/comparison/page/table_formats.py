"""One table as Markdown, CSV and LaTeX."""

import dataclasses
import math
import re

from keras_dml.files import csv_text

_LATEX_NAMES = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "\u00b1": r"$\pm$",
        "\u00d7": r"$\times$",
        "\u2013": "--",
        "\u03b1": r"$\alpha$",
        "\u03b2": r"$\beta$",
        "\u03b3": r"$\gamma$",
        "\u03bb": r"$\lambda$",
        "\u03c4": r"$\tau$",
        "\u03c9": r"$\omega$",
        **{character: f"\\{character}" for character in "&%$#_{}"},
    }
)


# Sorts cells without a number behind all others.
LAST = -1e9


@dataclasses.dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Args:
        text: The text in Markdown and LaTeX.
        numbers: Tuple of strings for the CSV file, one for each part of the
            column. Defaults to `()`: the text.
        bold: Whether the text is bold. Defaults to `False`.
        link: The page that the text leads to, relative to the table's page.
            Defaults to `""`, none.
    """

    text: str
    numbers: tuple[str, ...] = ()
    bold: bool = False
    link: str = ""

    @property
    def value(self) -> float:
        """What a column is sorted by; cells without a number are last."""
        try:
            return float((self.numbers or (self.text,))[0])
        except ValueError:
            return LAST

    @classmethod
    def of(cls, form: str, *values: float | None) -> "Cell":
        """Makes a cell of numbers, with all digits in the CSV file.

        Args:
            form: How the numbers are formatted, such as `"{:.3f}"`. A dash
                is shown if the first number is `None` or NaN.
            *values: The numbers, one for each part of the column. `None` and
                NaN are empty in the CSV file.
        """
        texts = [
            "" if v is None or math.isnan(v) else f"{v:.6g}" for v in values
        ]
        text = form.format(*values) if texts[0] else "-"
        return cls(text, tuple(texts))


@dataclasses.dataclass(frozen=True)
class Column:
    """The header of a column.

    Args:
        title: The text in Markdown and LaTeX.
        parts: Tuple of the names of its columns in the CSV file. Defaults to
            `()`: one column with the title.
        numeric: Whether it is aligned to the right. Defaults to `True`.
    """

    title: str
    parts: tuple[str, ...] = ()
    numeric: bool = True

    @property
    def empty(self) -> Cell:
        """A cell without a value."""
        return Cell("-", ("",) * max(len(self.parts), 1))


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows under one header, with a caption that explains them.

    Args:
        name: Short name; the names of the files contain it.
        caption: Full sentences.
        columns: Tuple of `Column`.
        rows: Tuple of rows, each a tuple of `Cell`.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def to_markdown(table: Table) -> str:
    """Formats the table as Markdown, with its caption above it."""
    lines = [[_markdown(column.title) for column in table.columns]]
    lines += [[*map(_markdown_cell, row)] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    sides = [">" if column.numeric else "<" for column in table.columns]
    rules = [
        f"{'-' * (width + 1)}:" if side == ">" else f":{'-' * (width + 1)}"
        for width, side in zip(widths, sides, strict=True)
    ]
    head, *rows = (
        " | ".join(
            f"{text:{side}{width}}"
            for text, side, width in zip(line, sides, widths, strict=True)
        )
        for line in lines
    )
    body = [f"| {head} |", f"|{'|'.join(rules)}|"]
    body += [f"| {row} |" for row in rows]
    return "\n".join([table.caption, "", *body, ""])


def to_csv(table: Table) -> str:
    """Formats the numbers of the table as CSV, without the caption."""
    header = [
        name
        for column in table.columns
        for name in column.parts or (column.title,)
    ]
    rows = (
        [value for cell in row for value in cell.numbers or (cell.text,)]
        for row in table.rows
    )
    return csv_text([header, *rows])


def to_latex(table: Table) -> str:
    """Formats the table as a LaTeX `table` that needs no package."""
    layout = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{layout}}}",
        r"\hline",
        _latex_row(escape_latex(column.title) for column in table.columns),
        r"\hline",
    ]
    lines += [_latex_row(map(_latex_cell, row)) for row in table.rows]
    lines += [r"\hline", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Escapes text for LaTeX; code spans become typewriter text.

    >>> escape_latex("50 % of `a_b`")
    '50 \\\\% of \\\\texttt{a\\\\_b}'
    """
    pieces = text.translate(_LATEX_NAMES).split("`")
    if len(pieces) % 2 == 0:
        return "`".join(pieces)
    pieces[1::2] = [rf"\texttt{{{code}}}" for code in pieces[1::2]]
    return "".join(pieces)


def _latex_row(cells) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: Cell) -> str:
    text = escape_latex(cell.text)
    return rf"\textbf{{{text}}}" if cell.bold else text


def _markdown_cell(cell: Cell) -> str:
    text = _markdown(cell.text)
    text = f"[{text}]({cell.link})" if cell.link else text
    return f"**{text}**" if cell.bold else text


def _markdown(text: str) -> str:
    """Escapes the text of a cell: one line, no markup except code spans."""
    text = re.sub(r"\s+", " ", text)
    return re.sub(r"([|*<\[\]\\])", r"\\\1", text)
