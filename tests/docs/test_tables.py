"""Every table of a page is drawn, with all of its rows."""

import re

import pytest

from tests.conftest import ROOT
from tests.docs.pages import written

FENCE = re.compile(r"^( *)(`{3,}|~~~)")


def tables(text):
    """Yields each table: the line above it, and its lines."""
    fence, above, rows = "", "", []
    for line in [*text.splitlines(), ""]:
        found = FENCE.match(line)
        if found and (not fence or line.strip() == fence):
            fence = "" if fence else found[2]
        if not fence and line.startswith("|"):
            rows.append(line)
        else:
            if rows:
                yield above, rows
            above, rows = line, []


def check_tables(page, text):
    """Raises where a table would not be drawn, or not all of it."""
    for above, rows in tables(text):
        assert not above.strip(), f"{page}: no blank line above: {rows[0]}"
        assert len(rows) > 2, f"{page}: a blank line splits a table: {rows}"
        assert re.fullmatch(r"\|( ?:?-+:? ?\|)+", rows[1]), (
            f"{page}: a table without titles: {rows[0]}"
        )
        for row in rows:
            assert row.rstrip().endswith("|"), f"{page}: {row}"
        cells = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
        assert len({*cells}) == 1, f"{page}: {cells} cells: {rows[0]}"


@pytest.mark.slow
def test_tables_are_whole(generated):
    readme = ("README.md", (ROOT / "README.md").read_text(encoding="utf-8"))
    for page, text in [readme, *written(), *generated.items()]:
        check_tables(page, text)


@pytest.mark.parametrize(
    "text",
    [
        "Text\n| a | b |\n|---|---|\n| 1 | 2 |",
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n| 3 | 4 |",
        "| a | b |\n| 1 | 2 |\n| 3 | 4 |",
        "| a | b |\n|---|---|\n| 1 | 2 | 3 |",
        "| a | b |\n|---|---|\n| 1 | 2",
    ],
)
def test_broken_tables_are_found(text):
    with pytest.raises(AssertionError):
        check_tables("page", text)
