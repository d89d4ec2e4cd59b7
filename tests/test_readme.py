"""The commands and programs of README.md run as they are printed."""

import re
import shlex

import pytest

from tests.commands import run_command
from tests.conftest import ROOT

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_readme_runs_from_top_to_bottom(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    ran = {"bash": 0, "python": 0}
    for language, code in BLOCK.findall((ROOT / "README.md").read_text()):
        if language == "python":
            exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
            ran["python"] += 1
        elif language == "bash":
            for line in code.strip().splitlines():
                program, *arguments = shlex.split(line)
                assert program == "keras-dml"
                outcome = run_command(capsys, monkeypatch, *arguments)
                assert outcome.code == 0, (line, outcome.err)
                ran["bash"] += 1
    assert ran["bash"] >= 3
    assert ran["python"] == 3
