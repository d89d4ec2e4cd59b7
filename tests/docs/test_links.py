"""Every link of the pages to a file of the project leads somewhere."""

import os
import re

import pytest

from tests.conftest import ROOT


def _is_made(page):
    """Returns whether Git ignores what makes such pages."""
    return page.relative_to(ROOT).parts[0] in ("runs", "build", "dist")


PAGES = [
    page.relative_to(ROOT)
    for page in sorted(ROOT.rglob("*.md"))
    if not (page.relative_to(ROOT).parts[0].startswith(".") or _is_made(page))
]
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
# Written when the site is built, which checks links to them (`make docs`).
GENERATED = "docs/reference/"
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
        place = os.path.normpath(os.path.join(page.parent, target))
        if "://" in target or place.startswith(GENERATED):
            continue
        file = (ROOT / page).parent / target if target else ROOT / page
        assert file.exists(), target
        if anchor:
            assert anchor in set(anchors(file)), f"{target}#{anchor}"


def test_the_readme_shows_its_two_pictures():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"!\[([^]]+)\]\(([^)]+)\)", text)
    assert [target for _, target in shown] == [
        "docs/figures/report.webp",
        "docs/figures/fit.svg",
    ]
    for words, target in shown:
        # Whoever cannot see a picture reads what it shows.
        assert len(words.split()) >= 10
        start = (ROOT / target).read_bytes()[:100]
        assert b"WEBP" in start or b"<svg" in start
