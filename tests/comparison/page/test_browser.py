"""The page of a comparison in a real browser, on a desk and on a phone."""

import base64
import re
import types
import urllib.parse
from pathlib import Path

import pytest

from tests import browser
from tests.comparison.page.test_comparison import runs, write_all


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """48 runs, of which twelve have a page."""
    folder = tmp_path_factory.mktemp("comparison")
    records = runs(folder / "runs")
    for record in records[:12]:
        (folder / "runs" / record.run / "report.html").touch()
    return write_all(records, folder).with_name("page.html")


@pytest.mark.slow
@browser.NEEDED
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_browser_shows_the_page(page, width, dark):
    seen = browser.look_at(page, page.parent, width, dark)
    seen = types.SimpleNamespace(**seen)
    assert seen.errors == []
    assert seen.broken == []
    assert seen.images == 3
    assert seen.width <= seen.window
    assert seen.height > 2000
    assert (seen.ground < 0.1) is dark
    ratio, text = seen.contrast
    assert ratio >= 4.5, text
    # Names and numbers were cut: `softm`, `ax`.
    assert seen.cut == []
    # Less is too small to read, even if a phone shows it sharply.
    assert min(seen.charts) >= 500
    up, down = seen.sorted
    assert up == sorted(up) and down == up[::-1]


@browser.NEEDED
def test_links_lead_to_the_pages_of_the_runs(page):
    links = browser.look_at(page, page.parent)["links"]
    paths = [
        Path(urllib.parse.unquote(urllib.parse.urlsplit(link).path))
        for link in links
        if "#" not in link
    ]
    assert len(paths) == 12
    assert all(path.is_file() for path in paths)
    assert {path.name for path in paths} == {"report.html"}
    assert len(links) > len(paths)


def test_figures_have_no_ground_that_a_dark_page_would_show(page):
    """Their white became a gray box."""
    text = page.read_text(encoding="utf-8")
    found = re.findall('svg[+]xml;base64,([^"]*)', text)
    assert len(found) == 3
    for content in found:
        drawn = base64.b64decode(content).decode()
        patch = drawn[drawn.index('id="patch_1"') :][:300]
        assert "fill: none" in patch
