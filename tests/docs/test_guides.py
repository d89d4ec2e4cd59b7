"""The guides run from top to bottom; pages and notebooks follow from them."""

import json
import os
import re
import sys
from types import SimpleNamespace

import pytest
import yaml

from tests.conftest import ROOT
from tests.docs.pages import guides, hook
from tests.thorough import ALL

FILES = guides.guide_files()
NAMES = [file.stem for file in FILES]
# An absolute path, one above the folder, or one of the user's home.
OUTSIDE = re.compile(r"""["'](/|~|\.\./|[A-Za-z]:\\)""")


def program(name):
    return (ROOT / guides.FOLDER / f"{name}.py").read_text(encoding="utf-8")


def page_of(path):
    """What MkDocs gives the hook, as far as it is looked at."""
    return SimpleNamespace(file=SimpleNamespace(src_uri=path))


def test_a_program_becomes_a_page_and_a_notebook():
    text = (
        "# %% [markdown]\n# # Title\n#\n"
        "# A [link](../a.md#b), [one](b.ipynb).\n"
        "\n# %%\nprint(1)\n\n# a comment\nprint(2)\n\n# %% a.py\nb = 1\n"
    )
    assert guides.page_text(text) == (
        "# Title\n\nA [link](../a.md#b), [one](b.ipynb).\n\n"
        "```python\nprint(1)\n\n# a comment\nprint(2)\n```\n\n"
        '```python title="a.py"\nb = 1\n```\n'
    )
    install, title, code, file = json.loads(guides.notebook_text(text, "x"))[
        "cells"
    ]
    assert install["source"] == [guides.INSTALL]
    assert "".join(title["source"]) == (
        f"# Title\n\nA [link]({guides.HOME}/docs/a.md#b), "
        f"[one]({guides.HOME}/docs/guides/b.ipynb)."
    )
    assert code["cell_type"] == "code"
    assert code["source"][0] == "print(1)\n"
    assert code["source"][-1] == "print(2)"
    assert file["source"] == ["%%writefile a.py\n", "b = 1"]


@pytest.mark.parametrize("text", ["a = 1\n# %%\n", "# %% [markdown]\ntext\n"])
def test_what_is_no_cell_is_refused(text):
    with pytest.raises(ValueError, match="begin"):
        guides.cells(text)


@pytest.mark.parametrize("name", NAMES)
def test_the_notebook_is_what_the_program_gives(name):
    file = ROOT / guides.FOLDER / f"{name}.ipynb"
    text = guides.notebook_text(program(name), name)
    assert file.read_text(encoding="utf-8") == text, (
        "Run `python docs/site_pages/guides.py`."
    )
    for cell in json.loads(text)["cells"]:
        assert not cell.get("outputs")


def test_no_notebook_is_left_over():
    notebooks = (ROOT / guides.FOLDER).glob("*.ipynb")
    assert sorted(file.stem for file in notebooks) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_in_the_navigation_and_leads_to_colab(name):
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]
    (section,) = (one["Notebooks"] for one in nav if "Notebooks" in one)
    titles = {path: title for path, title, _ in guides.guide_pages()}
    path = f"guides/{name}.md"
    assert {titles[path]: path} in section
    title, links, *_ = hook.on_page_markdown(
        guides.page_text(program(name)), page_of(path)
    ).split("\n\n")
    assert title == f"# {titles[path]}"
    colab = "https://colab.research.google.com/github/keras-dml/keras-dml"
    assert f"({colab}/blob/main/docs/guides/{name}.ipynb)" in links
    assert f"({name}.ipynb)" in links


@pytest.mark.parametrize("name", NAMES)
def test_a_guide_stays_in_its_folder_and_its_links_lead_somewhere(name):
    for text, is_code, _ in guides.cells(program(name)):
        if is_code:
            assert not OUTSIDE.search(text)
            continue
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            file = os.path.join(ROOT, guides.FOLDER, target)
            assert "://" in target or os.path.isfile(file), target


def test_links_to_a_notebook_lead_to_its_page():
    text = hook.at_home("README.md", "[a](docs/guides/photos.ipynb)")
    assert text == "[a](guides/photos.md)"


@pytest.mark.slow
@pytest.mark.parametrize(
    # That on other backends trains three times.
    "name",
    NAMES if ALL else [name for name in NAMES if name != "backends"],
)
def test_the_guide_runs_from_top_to_bottom(monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = {"__name__": "guide"}
    for text, is_code, file in guides.cells(program(name)):
        if file:  # `%%writefile` in the notebook
            (tmp_path / file).write_text(text, encoding="utf-8")
        elif is_code:
            exec(compile(text, f"{name}.py", "exec"), names)
