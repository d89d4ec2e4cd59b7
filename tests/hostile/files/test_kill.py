"""A kill at any write of a run: the same command goes on, or says how."""

import sys

import pytest

from tests.hostile.runner import check_outcome, limited, run_apart, run_command

# Kills itself when a file is whole but has not got its name yet.
SCRIPT = """
import os, signal, sys
from keras_dml.cli import main
whole, rename = sys.argv.pop(1), os.replace
def replace(source, target):
    if str(target).endswith(whole):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(source, target)
os.replace = replace
main()
"""


@pytest.mark.parametrize(
    ("file", "holds_work"),
    [
        ("config.yaml", False),
        pytest.param("off_the_shelf.npz", False, marks=pytest.mark.slow),
        pytest.param("last.npz", False, marks=pytest.mark.slow),
        pytest.param("history.csv", True, marks=pytest.mark.slow),
        pytest.param("embedder.keras", True, marks=pytest.mark.slow),
        pytest.param("metrics.json", True, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("more", [(), ("--resume",)])
def test_a_kill(file, holds_work, more, images, tmp_path, capsys, monkeypatch):
    output = tmp_path / "run"
    command = [
        *("fit", str(images), "--output", str(output), "--epochs", "1"),
        *("--backbone", "small_cnn", "--set", "sampling.steps_per_epoch=1"),
        *("--no-export", "--no-report"),
    ]
    killed = run_apart(sys.executable, "-c", SCRIPT, file, *command)
    assert killed.code == -9, killed
    with limited():
        outcome = run_command(capsys, monkeypatch, *command, *more)
    if holds_work and not more:
        check_outcome(outcome, 2, "already holds an unfinished run.*--resume")
    else:
        check_outcome(outcome, 0, "")
        assert (output / "metrics.json").is_file()
