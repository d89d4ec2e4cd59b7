"""Every link of the pages to a file of the project leads somewhere."""

import re

import pytest

from tests.conftest import ROOT

PAGES = [
    page.relative_to(ROOT)
    for page in sorted(ROOT.rglob("*.md"))
    if not any(part.startswith(".") for part in page.relative_to(ROOT).parts)
]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(page):
    """The anchors that GitHub and MkDocs give to the headings of a page."""
    for heading in HEADING.findall(page.read_text(encoding="utf-8")):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        yield plain.strip().replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target, anchor in LINK.findall(text):
        if "://" in target:
            continue
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), target
        if anchor:
            assert anchor in set(anchors(file)), f"{target}#{anchor}"
