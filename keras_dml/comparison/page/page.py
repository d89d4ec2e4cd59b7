"""A Markdown page, with its tables and figures in the same folder."""

from pathlib import Path

from matplotlib.figure import Figure

from keras_dml.comparison.page.table_formats import (
    Table,
    to_csv,
    to_latex,
    to_markdown,
)
from keras_dml.files import write_text
from keras_dml.plotting import save_figure
from keras_dml.wording import slug

FILE = "report.md"


class Page:
    """Collects the parts of `report.md`.

    Tables and figures are written at once, into `tables/` and `figures/`.

    Args:
        folder: Where to write; it is made if it does not exist.

    Example:

    ```python
    page = Page(folder)
    page.add("# Losses", "Three seeds of each.")
    page.add_table(table)
    page.write()
    ```
    """

    def __init__(self, folder: str | Path) -> None:
        self.path = Path(folder, FILE)
        self._tables = Path(folder, "tables")
        self._figures = Path(folder, "figures")
        self._parts: list[str] = []
        for inner in (self._tables, self._figures):
            inner.mkdir(parents=True, exist_ok=True)

    def add(self, *parts: str) -> None:
        """Adds headings and paragraphs; leaves out empty ones."""
        self._parts += [part.strip("\n") for part in parts if part]

    def add_table(self, table: Table) -> None:
        """Adds a table, and writes it in three formats."""
        write_text(self._tables / f"{table.name}.md", to_markdown(table))
        write_text(self._tables / f"{table.name}.csv", to_csv(table))
        write_text(self._tables / f"{table.name}.tex", to_latex(table))
        link = f"tables/{table.name}"
        links = f"[CSV]({link}.csv) and [LaTeX]({link}.tex)"
        self.add(to_markdown(table), f"This table as {links}.")

    def add_figure(self, text: str, figure: Figure, name: str = "") -> None:
        """Adds a figure, and writes it in two formats.

        Args:
            text: What it shows.
            figure: The figure.
            name: Name of its files. Defaults to `""`: made of the text.
        """
        name = name or slug(text)
        save_figure(figure, self._figures / name)
        picture = f"![{text}](figures/{name}.png)"
        self.add(picture, f"[SVG](figures/{name}.svg)")

    def write(self) -> None:
        """Writes the page."""
        write_text(self.path, "\n\n".join(self._parts) + "\n")
