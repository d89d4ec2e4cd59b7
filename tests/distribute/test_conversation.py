"""What two real workers say to each other, and what Keras still cannot do."""

import json
import os
import subprocess
import sys

import pytest

from keras_dml import distribute
from tests.conftest import ROOT
from tests.distribute.processes import Workers


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The lines that both workers printed."""
    folder = tmp_path_factory.mktemp("conversation")
    environment = {"CHECKPOINT": str(folder / "last.npz")}
    command = ["tests.distribute.conversation"]
    with Workers(folder, [command] * 2, [environment] * 2) as both:
        assert both.codes() == [0, 0], both.output(0) + both.output(1)
        return [both.output(index).splitlines() for index in (0, 1)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["collectives", "agreement", "checkpoints", "training", "done"]
)
def test_both_workers_keep_the_promise(said, line):
    assert all(line in lines for lines in said)


@pytest.mark.slow
def test_upstream(said):
    """Fails when Keras can train on several workers by itself.

    Then `keras_dml/distribute/worker_fit.py` can go, but for the flag that
    stops all
    workers: https://github.com/keras-team/keras/issues/20585
    """
    for lines in said:
        assert "upstream is fixed" not in lines
        assert any(line.startswith("upstream fails: ") for line in lines)


def test_one_process_talks_to_itself():
    assert distribute.num_workers() == 1
    assert distribute.is_chief()
    assert distribute.gather([1]) == [[1]]
    assert distribute.broadcast({"a": 1}) == {"a": 1}
    assert distribute.gather_bytes(b"a") == [b"a"]
    assert distribute.own_rows(3).tolist() == [0, 1, 2]
    assert distribute.together(lambda: 5) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "config, message",
    [
        ("{", "TF_CONFIG is broken: it is not JSON"),
        (
            json.dumps(
                {
                    "cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"]},
                    "task": {"type": "worker", "index": 0},
                }
            ),
            "Parameter servers are not supported",
        ),
    ],
)
def test_the_command_line_refuses_a_broken_cluster(tmp_path, config, message):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.distribute.worker",
            "fit",
            "digits",
            f"--output={tmp_path / 'run'}",
        ],
        env={**os.environ, "TF_CONFIG": config},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()
