"""What `make demo` runs gains on scripts that it never saw."""

import json
import re
import shlex

import pytest

from tests.commands import run_command
from tests.conftest import ROOT


@pytest.mark.slow
def test_a_fifth_of_the_demo_gains_on_unseen_scripts(
    capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(
        r"^\t\$\(BIN\)/keras-dml (fit glyphs .+)$",
        (ROOT / "Makefile").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    words = shlex.split(command.replace("--epochs 2", "--epochs 1"))
    settings = (
        "sampling.steps_per_epoch=40",
        "optimizer.backbone.warmup_steps=10",
    )
    for setting in settings:
        words += ["--set", setting]
    words += ["--no-report", "--no-export", "--json"]
    outcome = run_command(capsys, monkeypatch, *words)
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    assert result["split"] == "classes" and not result["seen"]
    # Measured: .064 of raw pixels, .092 after 40 steps of 200.
    assert result["gains"]["pretrained"]["map@r"]["low"] > 0.005
