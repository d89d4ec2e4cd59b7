"""A page as Markdown and HTML, with its tables and figures beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from keras_dml.comparison.page.table_formats import (
    Table,
    to_csv,
    to_latex,
    to_markdown,
)
from keras_dml.files import write_text
from keras_dml.plotting import save_figure, svg
from keras_dml.report.page import TEMPLATES, make_environment
from keras_dml.report.thumbnails import data_uri
from keras_dml.wording import slug

FILE, HTML_FILE = "report.md", "page.html"


class Picture(NamedTuple):
    """A figure of a page.

    Args:
        text: What it shows.
        name: Name of its files.
        uri: The figure as SVG.
    """

    text: str
    name: str
    uri: str


class Page:
    """Collects the parts of `report.md` and `page.html`.

    Tables and figures are written at once, into `tables/` and `figures/`.
    `page.html` holds all it shows.

    Args:
        folder: Where to write; it is made if it does not exist.
        title: The title.

    Example:

    ```python
    page = Page(folder, "Losses")
    page.add("Three seeds of each.", "## Results")
    page.add_table(table)
    page.write()
    ```
    """

    def __init__(self, folder: str | Path, title: str) -> None:
        self.path, self.html = Path(folder, FILE), Path(folder, HTML_FILE)
        self._title = title
        self._tables = Path(folder, "tables")
        self._figures = Path(folder, "figures")
        self._parts: list[str | Table | Picture] = []
        # The tables that are also files.
        self._files: set[str] = set()
        for inner in (self._tables, self._figures):
            inner.mkdir(parents=True, exist_ok=True)

    def add(self, *parts: str) -> None:
        """Adds headings, paragraphs and lists; leaves out empty ones."""
        self._parts += [part.strip("\n") for part in parts if part]

    def add_table(self, table: Table, *, files: bool = True) -> None:
        """Adds a table, and writes it in three formats.

        Args:
            table: The table.
            files: Whether to write the formats. Defaults to `True`.
        """
        self._parts.append(table)
        if files:
            self._files.add(table.name)
            write_text(self._tables / f"{table.name}.md", to_markdown(table))
            write_text(self._tables / f"{table.name}.csv", to_csv(table))
            write_text(self._tables / f"{table.name}.tex", to_latex(table))

    def add_figure(self, text: str, figure: Figure, name: str = "") -> None:
        """Adds a figure, and writes it in two formats.

        Args:
            text: What it shows.
            figure: The figure.
            name: Name of its files. Defaults to `""`: made of the text.
        """
        name = name or slug(text)
        save_figure(figure, self._figures / name)
        uri = data_uri(svg(figure, transparent=True), "image/svg+xml")
        self._parts.append(Picture(text, name, uri))

    def write(self) -> None:
        """Writes the page."""
        texts = [f"# {self._title}", *map(self._markdown, self._parts)]
        write_text(self.path, "\n\n".join(texts) + "\n")
        write_text(self.html, self._html())

    def _markdown(self, part: str | Table | Picture) -> str:
        if isinstance(part, str):
            return part
        if isinstance(part, Picture):
            link = f"figures/{part.name}"
            return f"![{part.text}]({link}.png)\n\n[SVG]({link}.svg)"
        text, link = to_markdown(part).strip("\n"), f"tables/{part.name}"
        if part.name not in self._files:
            return text
        files = f"[CSV]({link}.csv) and [LaTeX]({link}.tex)"
        return f"{text}\n\nThis table as {files}."

    def _html(self) -> str:
        own = Path(__file__).parent / "templates"
        environment = make_environment(own, TEMPLATES, slug=slug)
        return environment.get_template("comparison.html").render(
            title=self._title, parts=[*map(_shown, self._parts)]
        )


def _shown(part: str | Table | Picture) -> Mapping[str, Any]:
    """Returns a part by its kind, as the template reads it."""
    shown = dict.fromkeys(("heading", "list", "text", "figure", "table"))
    if isinstance(part, Table):
        return shown | {"table": part}
    if isinstance(part, Picture):
        return shown | {"figure": part}
    if part.startswith("## "):
        return shown | {"heading": part.removeprefix("## ")}
    if part.startswith("- "):
        lines = part.splitlines()
        return shown | {"list": [line.removeprefix("- ") for line in lines]}
    return shown | {"text": part}
