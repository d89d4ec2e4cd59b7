"""The site has a place for every name, command, key, recipe and plan."""

import html
import importlib
import importlib.util
import inspect
import re
from html.parser import HTMLParser

import pytest
import yaml

from keras_dml.cli.app import COMMANDS
from keras_dml.config import load_recipe, recipe_names
from keras_dml.config.plans import load_plan, plan_names
from keras_dml.losses.registry import LOSSES
from keras_dml.run.folder import RunFolder
from tests.conftest import ROOT
from tests.docs.pages import (
    DOCS,
    commands,
    docstrings,
    formulas,
    guides,
    hook,
    symbols,
    written,
)

pytestmark = pytest.mark.slow


def exported(package):
    """The public names of a package, as Python imports it."""
    if package == "keras_dml.embed":
        pytest.importorskip("apache_beam", reason="Beam is not installed.")
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not inspect.ismodule(value)
        ]
    return {
        name
        for name in names
        if not name.startswith("_")
        and not inspect.ismodule(getattr(module, name))
    }


def test_every_package_has_a_page(generated):
    packages = {
        f"keras_dml.{file.parent.name}"
        for folder in (ROOT / "keras_dml", ROOT)
        for file in folder.glob("*/__init__.py")
        if folder != ROOT or file.parent.name == "export"
    }
    packages -= {"keras_dml.cli", "keras_dml.configs"}
    assert packages | {"keras_dml"} == {*symbols.PACKAGES}
    for name in symbols.PACKAGES:
        assert hook.package_page(name) in generated


@pytest.mark.parametrize("package", symbols.PACKAGES)
def test_every_public_name_has_a_place(generated, package):
    """What the source says is public is what Python finds, and is shown."""
    known = symbols.symbols(package)
    paths = {one.path for one in known}
    assert {f"{package}.{name}" for name in exported(package)} <= paths
    text = "\n".join(
        text
        for path, text in generated.items()
        if path == hook.package_page(package)
        or (package == symbols.LOSSES and path.startswith("reference/losses/"))
    )
    for one in known:
        module = importlib.import_module(one.module)
        assert hasattr(module, one.name), one
        shown = (f"::: {one.path}\n", f"{{ #{one.path} }}\n")
        assert sum(text.count(place) for place in shown) == 1, one.path


def test_the_page_of_a_loss_has_its_picture_and_cost(generated):
    pictures = (ROOT / "docs" / "figures" / "losses").glob("*.png")
    for key in (path.stem for path in pictures):
        text = generated[f"reference/losses/{key}.md"]
        assert f"](../../figures/losses/{key}.png)" in text
    measured = {
        path.rpartition("/")[2].removesuffix(".md")
        for path, text in generated.items()
        if "Cost of a step" in text
    }
    assert measured == {*LOSSES}
    contrastive = generated["reference/losses/contrastive.md"]
    assert re.search(r"\| Contrastive, Euclidean \| [\d.]+ \|", contrastive)
    assert "figures/losses" not in generated["reference/losses/n_pair.md"]


def test_the_page_of_a_loss_has_its_formula(generated):
    pages = {key for key, _, _ in symbols.loss_pages()} - {
        *("base", "distillation", "pair_loss", "registry"),
        *("with_column", "wrapped"),
    }
    assert {*formulas.FORMULAS} == pages
    for key in pages:
        text = generated[f"reference/losses/{key}.md"]
        for latex in formulas.FORMULAS[key]:
            assert f'aria-label="{html.escape(latex)}"' in text
    assert 'class="formula"' not in generated["reference/losses/base.md"]


def test_every_name_that_a_guide_imports_has_a_place():
    known = {one.home for one in symbols.all_symbols().values()}
    known |= {*symbols.all_symbols()}
    programs = [(path, text) for path, _, text in guides.guide_pages()]
    for page, text in [*written(), *programs]:
        if page == "CONTRIBUTING.md" or "lab" in page:
            continue
        for module, names in re.findall(
            r"^ *from (keras_dml[\w.]*) import ([\w, ]+)$", text, re.MULTILINE
        ):
            for name in names.split(", "):
                one = f"{module}.{name}"
                defined = symbols.definition(module, name)[0]
                assert {one, f"{defined}.{name}"} & known, f"{page}: {one}"


def test_every_command_and_option_has_a_place(generated):
    text = generated[commands.PATH]
    assert len(commands.all_commands()) == len(COMMANDS)
    for name, command in commands.all_commands().items():
        assert f"## {name} {{ #{name} }}" in text
        for one in command.params:
            for option in [*one.opts, *one.secondary_opts]:
                if option.startswith("--"):
                    assert re.search(rf"#{name}{option} }}|`{option}`", text), (
                        option
                    )
        assert all(one.help for one in command.params), name


def test_every_recipe_and_plan_has_a_place(generated):
    text = generated["reference/recipes.md"]
    for name in recipe_names():
        recipe = load_recipe(name)
        assert f"### {name} {{ #{name} }}" in text
        for part in (recipe.about, recipe.use, recipe.paper, recipe.expected):
            assert part in text
    text = generated["reference/plans.md"]
    for name in plan_names():
        assert f"## {name} {{ #{name} }}" in text
        assert load_plan(name).title.rstrip(".") in text


def test_files_of_a_run_are_told():
    text = (DOCS / "files.md").read_text(encoding="utf-8")
    folder = RunFolder("run")
    for value in vars(folder).values():
        if value != folder.path and folder.path in getattr(
            value, "parents", ()
        ):
            assert f"`{value.relative_to(folder.path).parts[0]}" in text, value


def nav_pages(entry):
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, dict):
        entry = [*entry.values()]
    if isinstance(entry, list):
        for one in entry:
            yield from nav_pages(one)


def test_the_navigation_names_every_page_once(generated):
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    for entry in nav:
        if "Reference" in entry:
            entry["Reference"] = hook.navigation()
    named = [*nav_pages(nav)]
    assert len(named) == len({*named})
    pages = {hook.site_path(name) for name, _ in written()} | {*generated}
    assert {*named} == pages


def test_a_docstring_becomes_markdown():
    text = docstrings.to_markdown(
        "Adds.\n\n`a + b`\n\nArgs:\n    a: Float, see\n        `b`. Defaults "
        "to `1`.\n    **kwargs: More.\n\nReturns:\n    The sum: a tensor.\n\n"
        "Example:\n\n>>> add(1, 2)\n3\n\nSee `keras_dml.losses.Loss`."
    )
    assert "```text\na + b\n```" in text
    assert "`a`\n:   Float, see\n    `b`. Defaults to `1`." in text
    assert "`**kwargs`\n:   More." in text
    assert "**Returns**\n\nThe sum: a tensor." in text
    assert "```pycon\n>>> add(1, 2)\n3\n```" in text
    assert "[`keras_dml.losses.Loss`][keras_dml.losses.Loss]" in text


def test_links_out_of_the_pages_lead_to_the_site():
    text = hook.at_home(
        "docs/lab/a.md",
        "[a](../../examples/serving/) [b](../embed.md#c) [c](https://d.e)",
    )
    assert text == (
        "[a](../examples/serving/about.md) [b](../embed.md#c) [c](https://d.e)"
    )


class Loaded(HTMLParser):
    """Collects what a page loads."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag != "a" and given.get("rel") != "canonical":
            self.found |= {given.get("src"), given.get("href")}


def test_the_site_loads_nothing(site):
    pages = [*site.rglob("*.html")]
    assert len(pages) > 80
    for page in pages:
        parser = Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        addresses = [one for one in parser.found if one and "//" in one]
        assert addresses == [], page.name
