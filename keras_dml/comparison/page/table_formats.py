"""One table as Markdown, CSV and LaTeX."""

import csv
import dataclasses
import io
import re

_LATEX_NAMES = {
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


@dataclasses.dataclass(frozen=True)
class Cell:
    """What stands in one place of a table.

    Args:
        text: What is read.
        numbers: Tuple of strings, what stands in the file of values; as many
            as the column has parts. Defaults to `()`, the text.
        bold: Defaults to `False`.
    """

    text: str
    numbers: tuple[str, ...] = ()
    bold: bool = False


@dataclasses.dataclass(frozen=True)
class Column:
    """Head of a column.

    Args:
        title: What is read.
        parts: Tuple of names of the columns that it is in the file of values.
            Defaults to `()`, one column of the title.
        numeric: Whether it is aligned to the right. Defaults to `True`.
    """

    title: str
    parts: tuple[str, ...] = ()
    numeric: bool = True


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows under one head, with what must be known to read them.

    Args:
        name: Short name, from which the files are named.
        caption: Full sentences.
        columns: Tuple of `Column`.
        rows: Tuple of rows, each a tuple of `Cell`.
    """

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


def to_markdown(table: Table) -> str:
    """The table with its caption above it.

    Example:

    >>> print(to_markdown(table))
    Grocery, 3 seeds.
    <BLANKLINE>
    | arm | R@1 |
    |:--|--:|
    | softmax | **0.601** |
    """
    lines = [
        " | ".join(_markdown(column.title) for column in table.columns),
        "|".join(
            "--:" if column.numeric else ":--" for column in table.columns
        ),
    ]
    lines[0] = f" {lines[0]} "
    for row in table.rows:
        cells = [_markdown(cell.text) for cell in row]
        marked = [
            f"**{text}**" if cell.bold and text else text
            for cell, text in zip(row, cells, strict=True)
        ]
        lines.append(f" {' | '.join(marked)} ")
    body = "\n".join(f"|{line}|" for line in lines)
    return f"{table.caption}\n\n{body}\n"


def to_csv(table: Table) -> str:
    """The values with all their digits, without the caption."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        name
        for column in table.columns
        for name in column.parts or (column.title,)
    )
    for row in table.rows:
        writer.writerow(
            value for cell in row for value in cell.numbers or (cell.text,)
        )
    return buffer.getvalue()


def to_latex(table: Table) -> str:
    """A `table` with a plain `tabular`, needing no package."""
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
    for row in table.rows:
        lines.append(
            _latex_row(
                rf"\textbf{{{escape_latex(cell.text)}}}"
                if cell.bold
                else escape_latex(cell.text)
                for cell in row
            )
        )
    lines += [r"\hline", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is; code spans as typewriter.

    >>> escape_latex("50 % of `a_b`")
    '50 \\\\% of \\\\texttt{a\\\\_b}'
    """
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return _escape_characters(text)
    return "".join(
        rf"\texttt{{{_escape_characters(piece)}}}"
        if number % 2
        else _escape_characters(piece)
        for number, piece in enumerate(pieces)
    )


def _escape_characters(text: str) -> str:
    return "".join(_LATEX_NAMES.get(character, character) for character in text)


def _latex_row(cells) -> str:
    return " & ".join(cells) + r" \\"


def _markdown(text: str) -> str:
    """Text of a cell: on one line, and no mark-up beside code spans."""
    text = re.sub(r"\s+", " ", text)
    return re.sub(r"([|*<\[\]\\])", r"\\\1", text)
