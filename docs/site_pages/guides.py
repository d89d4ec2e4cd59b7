"""The guides: a page and a notebook from each program in `docs/guides/`.

A program is in Jupyter's percent format: a cell begins with `# %%`, or with
`# %% [markdown]` if it holds text, whose lines begin with `# `, or with
`# %% NAME.py` if it is a file that the cells below it import. The notebooks lie
beside the programs, so that Colab finds them in the repository;
`python docs/site_pages/guides.py` writes them.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "docs/guides"
HOME = "https://github.com/keras-dml/keras-dml/blob/main"
COLAB = HOME.replace("github.com", "colab.research.google.com/github")
# Until a release is on PyPI.
INSTALL = (
    '%pip install "keras-dml[litert] @ '
    'git+https://github.com/keras-dml/keras-dml"'
)
_MARKER = re.compile(r"^# %%(?: (\[markdown\]|\w+\.py))?$", re.MULTILINE)
_TITLE = re.compile(r"\A# .+\n")
_LINK = re.compile(r"(\]\()(?!https?:|#)([^)\s]+)\)")


class Cell(NamedTuple):
    """The text of a cell, whether it is a program, and of which file."""

    text: str
    is_code: bool = True
    file: str | None = None


def guide_files() -> list[Path]:
    """Returns the programs, in the order of their names."""
    return sorted((ROOT / FOLDER).glob("*.py"))


def cells(program: str) -> list[Cell]:
    """Returns the cells of a program.

    Args:
        program: Text in the percent format.

    Raises:
        ValueError: If something stands before the first cell, or a line of
            text is no comment.
    """
    before, *parts = _MARKER.split(program)
    if before.strip():
        raise ValueError(f"The guide begins outside of a cell: {before!r}")
    found = []
    for marker, part in zip(parts[::2], parts[1::2], strict=True):
        text, is_text = part.strip("\n"), marker == "[markdown]"
        if is_text:
            text = "\n".join(map(_uncommented, text.split("\n")))
        found.append(Cell(text, not is_text, None if is_text else marker))
    return found


def page_text(program: str) -> str:
    """Returns the program as Markdown, with the code in blocks."""
    parts = []
    for text, is_code, file in cells(program):
        title = f' title="{file}"' if file else ""
        parts.append(f"```python{title}\n{text}\n```" if is_code else text)
    return "\n\n".join(parts) + "\n"


def notebook_text(program: str, name: str) -> str:
    """Returns the program as the notebook `name`, without outputs."""
    made = [Cell(INSTALL), *map(_absolute, cells(program))]
    notebook = {
        "cells": [*map(_notebook_cell, made)],
        "metadata": {
            "colab": {"name": f"{name}.ipynb"},
            "kernelspec": {"display_name": "Python 3", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 4,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def guide_pages() -> Iterator[tuple[str, str, str]]:
    """Yields path, title and text of the page of each guide."""
    for file in guide_files():
        text = page_text(file.read_text(encoding="utf-8"))
        title = text.partition("\n")[0].removeprefix("# ")
        yield f"guides/{file.stem}.md", title, text


def is_guide(path: str) -> bool:
    """Returns whether a path in the repository is the notebook of a guide."""
    return os.path.dirname(path) == FOLDER and path.endswith(".ipynb")


def with_links(name: str, text: str) -> str:
    """Returns a page with links to the notebook below its title."""
    notebook = f"{name}.ipynb"
    links = (
        f"[Open in Colab]({COLAB}/{FOLDER}/{notebook}) ·\n"
        f"[Download the notebook]({notebook}){{ download }}\n"
    )
    return _TITLE.sub(lambda title: f"{title[0]}\n{links}", text, count=1)


def write_notebooks() -> None:
    """Writes the notebook of each guide beside it."""
    for file in guide_files():
        text = notebook_text(file.read_text(encoding="utf-8"), file.stem)
        file.with_suffix(".ipynb").write_text(text, encoding="utf-8")


def _uncommented(line: str) -> str:
    if line != "#" and not line.startswith("# "):
        raise ValueError(f"A line of text must begin with `# `: {line!r}")
    return line[2:]


def _absolute(cell: Cell) -> Cell:
    """Returns a cell whose links also work outside of the repository."""
    if cell.is_code:
        return cell
    return Cell(
        _LINK.sub(
            lambda link: (
                f"{link[1]}{HOME}/{os.path.normpath(f'{FOLDER}/{link[2]}')})"
            ),
            cell.text,
        ),
        is_code=False,
    )


def _notebook_cell(cell: Cell) -> dict[str, Any]:
    text = f"%%writefile {cell.file}\n{cell.text}" if cell.file else cell.text
    made = {"metadata": {}, "source": text.splitlines(keepends=True)}
    if not cell.is_code:
        return {"cell_type": "markdown", **made}
    return {"cell_type": "code", "execution_count": None, "outputs": []} | made


if __name__ == "__main__":
    write_notebooks()
