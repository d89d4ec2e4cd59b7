"""The programs that write the site, and the pages that are files."""

import sys

from tests.conftest import ROOT

__all__ = [
    "DOCS",
    "commands",
    "docstrings",
    "formulas",
    "guides",
    "hook",
    "origins",
    "settings",
    "symbols",
    "written",
]

DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
try:
    from site_pages import (
        commands,
        docstrings,
        formulas,
        guides,
        hook,
        origins,
        settings,
        symbols,
    )
finally:
    sys.path.remove(str(DOCS))


def written():
    """Yields path and text of every page that is a file."""
    outside = [ROOT / name for name in hook.OUTSIDE]
    for file in [*DOCS.rglob("*.md"), *outside]:
        name = file.relative_to(ROOT).as_posix()
        yield name, file.read_text(encoding="utf-8")
    for file in ROOT.glob("examples/*/*.md"):
        name = file.relative_to(ROOT).as_posix()
        yield name, file.read_text(encoding="utf-8")
