"""The changes that CONTRIBUTING.md shows work, and touch what it says."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SECTIONS = dict(
    re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", PAGE, re.DOTALL | re.MULTILINE)
)
BLOCK = re.compile(
    r"^(`{3,})\w+\n# (use|[\w/]+\.\w+)(?: \((.+?)\))?\n(.*?)^\1$",
    re.DOTALL | re.MULTILINE,
)


@pytest.fixture
def package(tmp_path):
    """A copy of the package, as it is installed."""
    ignored = shutil.ignore_patterns("__pycache__", "export", "configs")
    shutil.copytree(ROOT / "keras_dml", tmp_path / "keras_dml", ignore=ignored)
    for part in ("export", "configs"):
        shutil.copytree(ROOT / part, tmp_path / "keras_dml" / part)
    return tmp_path


def change(package, name, how, code):
    """Writes one block of the page into the package."""
    file = package / (
        name if name.startswith("keras_dml/") else f"keras_dml/{name}"
    )
    if how is None:
        assert not file.exists(), f"{name} exists already"
        file.write_text(code, encoding="utf-8")
    elif how == "change":
        text = file.read_text(encoding="utf-8")
        for part in code.split("@@\n"):
            lines = part.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] != "+")
            after = "".join(line[1:] for line in lines if line[0] != "-")
            assert text.count(before) == 1, before
            text = text.replace(before, after)
        file.write_text(text, encoding="utf-8")
    elif how == "add":
        with open(file, "a", encoding="utf-8") as opened:
            opened.write(code)
    else:
        header = f"class {how.removeprefix('in ')}(Section):"
        text = file.read_text(encoding="utf-8")
        begin = text.index(header)
        end = text.index("\n\n\n", begin) + 1
        file.write_text(text[:end] + code + text[end:], encoding="utf-8")


@pytest.mark.parametrize("section", SECTIONS)
def test_a_change_needs_no_more_than_the_page_shows(package, section):
    blocks = [found[1:] for found in BLOCK.findall(SECTIONS[section])]
    changes = [block for block in blocks if block[0] != "use"]
    (use,) = (code for name, _, code in blocks if name == "use")
    assert 1 <= len(changes) <= 2
    for name, how, code in changes:
        change(package, name, how or None, code)
    done = subprocess.run(
        [sys.executable, "-c", use],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
