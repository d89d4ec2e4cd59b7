"""Fills the page's template."""

from pathlib import Path
from typing import Any

import jinja2
import markupsafe

TEMPLATES = Path(__file__).parent / "templates"


def render(**values: Any) -> str:
    """Returns the page as HTML; all values are escaped.

    Args:
        **values: What `templates/page.html` names. A name that is missing is
            an error.
    """
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["share"] = _share
    environment.filters["gain"] = _gain
    environment.filters["count"] = lambda value: f"{value:,}"
    return environment.get_template("page.html").render(
        style=_file("style.css"), script=_file("sort.js"), **values
    )


def _file(name: str) -> markupsafe.Markup:
    """A file of the page's own, which needs no escaping."""
    return markupsafe.Markup((TEMPLATES / name).read_text(encoding="utf-8"))


def _share(value: float | None) -> str:
    """A metric; a class without any value has a dash."""
    return "-" if value is None else f"{value:.3f}"


def _gain(value: float) -> str:
    return f"{value:+.3f}"
