"""Every section of the laboratory notes says when it was written."""

import re

import pytest

from tests.docs.pages import DOCS

SECTION = re.compile(r"^## (.+)\n\n(.+)", re.MULTILINE)
PAGES = sorted((DOCS / "lab").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_section_begins_with_a_date(page):
    sections = SECTION.findall(page.read_text("utf-8"))
    assert sections
    for title, line in sections:
        assert re.match(r"20\d\d-\d\d-\d\d\b", line), title
