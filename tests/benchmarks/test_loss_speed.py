"""The benchmarks of the losses run, on small inputs and without the peer."""

import json
import subprocess
import sys

import pytest

from tests.conftest import ROOT

CASES = ("proxy_anchor", "multi_similarity")


@pytest.mark.slow
def test_times_and_memory():
    script = ROOT / "benchmarks" / "loss_speed.py"
    command = [sys.executable, script, "--quick", "--json", "--only", *CASES]
    times, memory = (
        json.loads(subprocess.check_output([*command, *options], text=True))
        for options in (["--rounds", "1", "--seconds", "0"], ["--memory"])
    )
    assert [row["loss"] for row in times] == list(CASES)
    for row in times:
        assert min(row["xla_ms"], row["plain_ms"], row["floor_ms"]) > 0
        assert "peer_ms" not in row
    assert [row["loss"] for row in memory] == list(CASES)


@pytest.mark.slow
def test_without_tensorflow():
    pytest.importorskip("jax")
    pytest.importorskip("torch")
    script = ROOT / "benchmarks" / "loss_speed.py"
    options = ["--gpu", "--quick", "--json", "--rounds", "1", "--seconds", "0"]
    command = [sys.executable, script, *options, "--only", *CASES]
    rows = json.loads(subprocess.check_output(command, text=True))
    assert [row["loss"] for row in rows] == list(CASES)
    for row in rows:
        assert min(row["jax_ms"], row["torch_ms"], row["floor_ms"]) > 0
        assert "xla_ms" not in row


@pytest.mark.slow
def test_costs():
    script = ROOT / "benchmarks" / "loss_costs.py"
    keys = ("soft_triple", "margin", "proxy_isa", "proxynca_pp", "supcon")
    words = ["--quick", "--json", "--rounds", "1", "--seconds", "0"]
    command = [sys.executable, script, *words, "--only", *keys]
    rows = json.loads(subprocess.check_output(command, text=True))
    assert [row["loss"] for row in rows] == list(keys)
    assert all(min(row["step"], row["products"]) > 0 for row in rows)
