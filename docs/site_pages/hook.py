"""Adds the generated pages and the pages outside `docs/` to the site.

MkDocs calls the functions `on_...`; `pages` and `navigation` work without it.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from site_pages.commands import commands_page
from site_pages.docstrings import linked
from site_pages.guides import guide_pages, is_guide, with_links
from site_pages.packages import package_page, package_pages
from site_pages.recipes import recipe_pages
from site_pages.settings import settings_pages
from site_pages.symbols import LOSSES, PACKAGES, ROOT, loss_pages

# Pages of the repository that are not in `docs/`.
OUTSIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
EXAMPLES = "examples"
SOURCES = ROOT / "build" / "site-sources"
_LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)\s]*)?\))")


def pages() -> Iterator[tuple[str, str, str]]:
    """Yields path, title and text of every generated page."""
    yield from package_pages()
    yield commands_page()
    yield from settings_pages()
    yield from recipe_pages()
    yield from guide_pages()


def navigation() -> list[Any]:
    """Returns the entries of *Reference*."""
    losses: list[Any] = [package_page(LOSSES)]
    losses += [
        {
            title
            if key != "base"
            else "Base classes": f"reference/losses/{key}.md"
        }
        for key, title, _ in loss_pages()
        if key != "registry"
    ]
    packages = [
        {one: losses if one == LOSSES else package_page(one)}
        for one in PACKAGES
    ]
    return [
        "reference/index.md",
        {"Commands": "reference/commands.md"},
        {"Configuration": "reference/configuration.md"},
        {"Recipes": "reference/recipes.md"},
        {"Plans": "reference/plans.md"},
        {"Plan files": "reference/plan_files.md"},
        {"Files": "files.md"},
        {"Python": packages},
    ]


def site_path(path: str) -> str:
    """Returns where a file of the repository lies on the site."""
    if is_guide(path):
        path = path.removesuffix(".ipynb") + ".md"
    if path.startswith(f"{EXAMPLES}/"):
        # The first README of a section would be what its heading opens.
        path = path.replace("/README.md", "/about.md")
    return path.removeprefix("docs/")


def at_home(page: str, text: str) -> str:
    """Returns a page whose links lead to the places of the site.

    Args:
        page: Path of the page in the repository.
        text: Its text, with links as the repository has them.
    """

    def moved(found: re.Match[str]) -> str:
        target = os.path.normpath(os.path.join(os.path.dirname(page), found[2]))
        if (ROOT / target / "README.md").is_file():
            target = f"{target}/README.md"
        if not (ROOT / target).is_file():
            return found[0]
        start = os.path.dirname(site_path(page)) or "."
        return found[1] + os.path.relpath(site_path(target), start) + found[3]

    return _LINK.sub(moved, text)


def on_startup(**_: Any) -> None:
    """Gathers the sources for griffe, which looks for them once, early."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "export", "configs")
    shutil.copytree(ROOT / "keras_dml", SOURCES / "keras_dml", ignore=ignored)
    for part in ("export", "configs"):
        shutil.copytree(ROOT / part, SOURCES / "keras_dml" / part)


def on_config(config: Any) -> Any:
    """Completes the navigation."""
    for entry in config.nav:
        if "Reference" in entry:
            entry["Reference"] = navigation()
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that no file of `docs/` holds."""
    from mkdocs.structure.files import File

    for path, _, text in pages():
        files.append(File.generated(config, path, content=text))
    for name in OUTSIDE:
        files.append(File.generated(config, name, abs_src_path=ROOT / name))
    for file in sorted((ROOT / EXAMPLES).rglob("*.*")):
        if file.is_file() and "__pycache__" not in file.parts:
            name = file.relative_to(ROOT).as_posix()
            place = site_path(name)
            files.append(File.generated(config, place, abs_src_path=str(file)))
    return files


def on_post_page(output: str, **_: Any) -> str:
    """Names source files as the repository does."""
    return output.replace(f"{SOURCES.relative_to(ROOT).as_posix()}/", "")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Corrects links out of `docs/`, and links names to the reference."""
    path = page.file.src_uri
    outside = path in OUTSIDE or path.startswith(f"{EXAMPLES}/")
    if outside:
        path = path.replace("/about.md", "/README.md")
    if path.startswith("reference/"):
        return markdown
    text = linked(at_home(path if outside else f"docs/{path}", markdown))
    folder, _, name = path.rpartition("/")
    return with_links(Path(name).stem, text) if folder == "guides" else text
