"""The commands and programs of the pages run as they are printed."""

import re
import shlex

import pytest

from keras_dml.comparison.jobs import make_jobs
from keras_dml.config.plans import parse_plan
from keras_dml.config.yaml_files import parse_yaml
from tests.commands import run_command
from tests.conftest import ROOT
from tests.thorough import ALL

LONG = pytest.mark.skipif(not ALL, reason="It trains for two minutes.")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "least"),
    [
        ("README.md", {"bash": 6, "python": 2}),
        # The guides `serving`, `phone` and `comparison` do nearly the same.
        pytest.param("docs/export.md", {"bash": 2, "python": 2}, marks=LONG),
        pytest.param("docs/compare.md", {"bash": 1, "python": 1}, marks=LONG),
    ],
)
def test_page_runs_from_top_to_bottom(
    capsys, monkeypatch, tmp_path, page, least
):
    monkeypatch.chdir(tmp_path)
    ran = dict.fromkeys(least, 0)
    names = {"__name__": "page"}
    for language, code in BLOCK.findall((ROOT / page).read_text()):
        if language == "python":
            exec(compile(code, page, "exec"), names)
            ran["python"] += 1
        elif language == "bash":
            for line in code.strip().splitlines():
                program, *arguments = shlex.split(line)
                assert program == "keras-dml"
                outcome = run_command(capsys, monkeypatch, *arguments)
                assert outcome.code == 0, (line, outcome.err)
                ran["bash"] += 1
    assert all(ran[language] >= count for language, count in least.items())


def test_the_plan_of_the_page_is_one():
    page = (ROOT / "docs" / "compare.md").read_text()
    (text,) = (code for kind, code in BLOCK.findall(page) if kind == "yaml")
    assert len(make_jobs(parse_plan(parse_yaml(text)))) == 2 * 3 * 3 * 2 * 3


def test_the_home_page_shows_what_the_readme_runs():
    readme, home = (
        (ROOT / page).read_text() for page in ("README.md", "docs/index.md")
    )
    assert set(BLOCK.findall(home)) <= set(BLOCK.findall(readme))
