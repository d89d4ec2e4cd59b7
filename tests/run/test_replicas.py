"""N replicas train as one device does."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

from keras_dml.run.checkpoint import load_checkpoint
from tests.conftest import ROOT
from tests.thorough import ALL

pytestmark = pytest.mark.slow
COUNTS = (1, 2, 4) if ALL else (1, 2)
# Above what whole runs differ by: in the loss of an epoch .012, in the mean
# logarithm of the losses' ratios .017, in MAP@R .0016.
LOSS, TREND, MAP_AT_R = 0.02, 0.06, 0.0025


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of each number of replicas."""
    folders = {}
    for count in COUNTS:
        folders[count] = tmp_path_factory.mktemp(f"replicas_{count}")
        names = ("steps", "rests", "frozen", *(("whole",) if ALL else ()))
        command = [sys.executable, "-m", "tests.run.replicas", str(count)]
        done = subprocess.run(
            [*command, str(folders[count]), *names],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-3000:]
    return folders


def history(run):
    with open(run / "history.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def column(run, name):
    return [float(row[name]) for row in history(run) if row[name]]


def metrics(run):
    return json.loads((run / "metrics.json").read_text())


@pytest.mark.parametrize("count", COUNTS[1:])
def test_five_steps(trained, count):
    one, other = trained[1] / "steps", trained[count] / "steps"
    losses, expected = column(other, "loss"), column(one, "loss")
    assert losses[0] == pytest.approx(expected[0], rel=1e-5)
    assert losses == pytest.approx(expected, rel=1e-3)
    assert metrics(other)["before"] == pytest.approx(
        metrics(one)["before"], abs=1e-6
    )


@pytest.mark.skipif(not ALL, reason="Fifteen epochs take many minutes.")
@pytest.mark.parametrize("count", COUNTS[1:])
def test_a_whole_default_run(trained, count):
    """Each step is equal until batch normalization has made rounding grow;
    then the runs differ as those of one device with other seeds do.
    """
    one, other = trained[1] / "whole", trained[count] / "whole"
    assert len(history(other)) == len(history(one)) == 15
    losses, expected = (np.array(column(run, "loss")) for run in (other, one))
    np.testing.assert_allclose(losses, expected, rtol=0, atol=LOSS)
    # Neither is the better one.
    assert abs(np.log(losses / expected).mean()) < TREND
    assert metrics(other)["before"] == pytest.approx(
        metrics(one)["before"], abs=1e-6
    )
    assert metrics(other)["after"]["map@r"] == pytest.approx(
        metrics(one)["after"]["map@r"], abs=MAP_AT_R
    )


@pytest.mark.parametrize("count", COUNTS[1:])
def test_a_frozen_network(trained, count):
    """Replicas get images, one device features that were computed once."""
    one, other = trained[1] / "frozen", trained[count] / "frozen"
    losses, expected = column(other, "loss"), column(one, "loss")
    assert len(losses) == 2
    assert losses == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("count", COUNTS[1:])
def test_rests_are_no_small_batches(trained, count):
    """Balanced batches, a memory, `refresh_bn` and validation."""
    one, other = trained[1] / "rests", trained[count] / "rests"
    for name in ("loss", "val_map@r"):
        assert column(other, name) == pytest.approx(column(one, name), rel=1e-3)
    # After the second epoch and after the last.
    assert len(column(one, "val_map@r")) == 2
    actual, expected = (
        load_checkpoint(run / "checkpoints" / "last.npz")
        for run in (other, one)
    )
    assert "memory/filled" in expected.paths["model"]
    for path, a, b in zip(
        expected.paths["model"],
        actual.values["model"],
        expected.values["model"],
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3, err_msg=path)
