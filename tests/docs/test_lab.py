"""Every section of the laboratory notes says when it was written."""

import re

import pytest

from tests.docs.pages import DOCS

SECTION = re.compile(r"^## (.+)\n\n(.+)", re.MULTILINE)


@pytest.mark.parametrize("name", ["performance", "results"])
def test_every_section_begins_with_a_date(name):
    sections = SECTION.findall((DOCS / "lab" / f"{name}.md").read_text("utf-8"))
    assert len(sections) > 8
    for title, line in sections:
        assert re.match(r"20\d\d-\d\d-\d\d\b", line), title
