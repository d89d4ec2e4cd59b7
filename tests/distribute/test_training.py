"""Trainings by real workers, which die, stop and hang on the way."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.run import fit as train
from keras_dml.run.checkpoint import load_checkpoint
from tests.conftest import ROOT
from tests.distribute.processes import PATIENCE, Workers, free_ports
from tests.distribute.worker import SIGNAL, arguments, overrides
from tests.images import image_folder
from tests.thorough import ALL

MODULE = "tests.distribute.worker"
RATES = {"supcon": 1e-3, "proxy_isa": 1e-4}


def workers(tmp_path, recipe, count, signals=None, extra=()):
    """Workers of one training; `signals` are those they send themselves."""
    command = [
        MODULE,
        *arguments(recipe, RATES[recipe]),
        f"--output={tmp_path / 'run'}",
        *extra,
    ]
    signals = signals or {}
    environments = [
        {SIGNAL: signals[index]} if index in signals else {}
        for index in range(count)
    ]
    return Workers(tmp_path / "output", [command] * count, environments)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """What each recipe trains on; the files leave classes to validate."""
    files = tmp_path_factory.mktemp("files") / "squares"
    image_folder(files, classes=48, images=5, size=24, suffix=".png")
    return {"supcon": str(files), "proxy_isa": "digits"}


def fit_here(folder, recipe, source, **flags):
    """The same training in this process."""
    config = resolve(
        recipe,
        source,
        flags={"model": {"backbone": "small_cnn"}, **flags},
        overrides=overrides(RATES[recipe]),
    )
    train.fit(config, folder)
    return folder


@pytest.fixture(scope="module")
def one_device(tmp_path_factory, sources):
    """For each recipe the run of one device."""
    folder = tmp_path_factory.mktemp("one")
    return {
        name: fit_here(folder / name, name, source)
        for name, source in sources.items()
    }


def last(run):
    return load_checkpoint(run / "checkpoints" / "last.npz")


def assert_same_run(actual, expected):
    """Weights to 1e-5, metrics to 1e-3, the same epochs."""
    for name, a, b in zip(
        last(expected).paths["model"],
        last(actual).values["model"],
        last(expected).values["model"],
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=name)
    found, wanted = (
        train.RunFolder(run).read_metrics() for run in (actual, expected)
    )
    for part in ("pretrained", "before", "after"):
        assert found[part] == pytest.approx(wanted[part], abs=1e-3)
    losses = [
        [row["loss"] for row in last(run).state["history"]]
        for run in (actual, expected)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.slow
def test_two_devices_of_one_machine_equal_one(tmp_path, one_device):
    """With the memory of Proxy-ISA, and batch norm that is trained."""
    two = fit_here(
        tmp_path / "two",
        "proxy_isa",
        "digits",
        strategy="mirrored",
        devices="cpu:2",
    )
    assert_same_run(two, one_device["proxy_isa"])


# Stands for the command; the second worker dies in its first life.
COMMAND = """#!/bin/sh
case "$TF_CONFIG" in *'"index": 1'*)
  if mkdir "$FIRST_LIFE" 2>/dev/null; then
    export {signal}="SIGKILL 1 2"
  fi
esac
exec "{python}" -m {module} "$@"
"""


@pytest.mark.slow
def test_a_killed_worker_is_started_again(tmp_path, sources, one_device):
    """SIGKILL in the second epoch, under the supervisor of the examples.

    With files and a validation after every epoch, whose best weights are kept.
    """
    command = tmp_path / "bin" / "keras-dml"
    command.parent.mkdir()
    command.write_text(
        COMMAND.format(signal=SIGNAL, python=sys.executable, module=MODULE)
    )
    command.chmod(0o755)
    done = subprocess.run(
        [
            ROOT / "examples" / "distributed" / "supervise.sh",
            "2",
            *arguments("supcon", RATES["supcon"], sources["supcon"])[1:],
            f"--output={tmp_path / 'run'}",
        ],
        env={
            **os.environ,
            "PATH": f"{command.parent}:{os.environ['PATH']}",
            "FIRST_LIFE": str(tmp_path / "first_life"),
            "FIRST_PORT": str(free_ports(2)),
            "CUDA_VISIBLE_DEVICES": "",
        },
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"Worker 1 \(.*\) is gone. Start all", done.stdout)
    assert "A worker ended with code" in done.stdout
    assert "Traceback" not in done.stdout
    # The chief tells how it gets on, for both; the first epoch was kept.
    for epoch in (1, 2, 3):
        assert done.stdout.count(f"epoch {epoch}/3  loss") == 1
    assert_same_run(tmp_path / "run", one_device["supcon"])
    history = last(tmp_path / "run").state["history"]
    assert all(row["val_recall@1"] for row in history)


@pytest.mark.slow
@pytest.mark.skipif(not ALL, reason="It starts six workers for minutes.")
def test_a_preempted_worker_stops_all_of_them(tmp_path, one_device):
    """SIGTERM to one of three in the middle of an epoch."""
    with workers(tmp_path, "proxy_isa", 3, {2: "SIGTERM 1 1"}) as first:
        assert first.codes() == [143] * 3, first.output(0)
        for index in range(3):
            assert "stopped by SIGTERM" in first.output(index)
            assert "epoch 2, step 2/" in first.output(index)
    state = last(tmp_path / "run").state
    assert (state["epoch"], state["step"]) == (1, 2)
    with workers(tmp_path, "proxy_isa", 3) as second:
        assert second.codes() == [0] * 3, second.output(0)
    assert_same_run(tmp_path / "run", one_device["proxy_isa"])


@pytest.mark.slow
def test_a_final_training_needs_no_shared_folder(tmp_path):
    """The second worker has no run folder, in either training."""
    command = [MODULE, *arguments("supcon", RATES["supcon"]), "--final=all"]
    commands = [
        [*command, f"--output={tmp_path / str(index)}"] for index in range(2)
    ]
    with Workers(tmp_path / "output", commands) as both:
        assert both.codes() == [0, 0], both.output(0) + both.output(1)
    final = train.RunFolder(tmp_path / "0" / "final")
    assert final.read_metrics()["final"]
    assert not (tmp_path / "1").exists()


@pytest.mark.slow
def test_a_frozen_worker_is_named_in_time(tmp_path):
    timeout = 8
    extra = [f"--peer-timeout={timeout}"]
    with workers(tmp_path, "supcon", 2, {1: "SIGSTOP 0 2"}, extra) as both:
        chief, frozen = both.processes
        state = Path(f"/proc/{frozen.pid}/stat")
        while state.read_text().split()[2] != "T":
            time.sleep(0.1)
            assert chief.poll() is None, both.output(0)
        start = time.monotonic()
        assert both.codes([chief]) == [75]
        assert time.monotonic() - start < timeout + 15
        name = f"Worker 1 ({both.addresses[1]})"
        assert f"Error: {name} has not answered for" in both.output(0)
        assert "Traceback" not in both.output(0)
        assert frozen.poll() is None


def open_ports(pid):
    """The ports of IPv4 at which a process listens."""
    files = Path(f"/proc/{pid}/fd").iterdir()
    with contextlib.suppress(OSError):
        sockets = {os.readlink(file) for file in files}
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, address, _, state, *_, inode = line.split()[:10]
            if state == "0A" and f"socket:[{inode}]" in sockets:
                yield int(address.rpartition(":")[2], 16)


@pytest.mark.slow
def test_strangers_do_not_disturb_a_training(tmp_path, one_device):
    """They send garbage, endless lines and nothing, from start to end."""
    attacks, links = 0, []
    with workers(tmp_path, "proxy_isa", 2) as both:
        own = {int(one.rpartition(":")[2]) for one in both.addresses}
        while both.processes[0].poll() is None:
            time.sleep(0.05)
            for port in {*open_ports(both.processes[0].pid)} - own:
                with contextlib.suppress(OSError):
                    links.append(socket.create_connection(("127.0.0.1", port)))
                    attacks += 1
                    links[-1].sendall(b"" if attacks % 2 else b"x" * 10_000)
            while len(links) > 200:
                links.pop(0).close()
        for link in links:
            link.close()
        assert both.codes() == [0, 0], both.output(0)
    assert attacks > 50
    assert_same_run(tmp_path / "run", one_device["proxy_isa"])


@pytest.mark.slow
def test_other_settings_are_refused_by_all(tmp_path):
    commands = [
        [
            MODULE,
            *arguments("supcon"),
            f"--set=model.dim={dim}",
            f"--output={tmp_path / 'run'}",
        ]
        for dim in (16, 17)
    ]
    with Workers(tmp_path / "output", commands) as both:
        assert both.codes() == [2, 2]
        for index in (0, 1):
            output = both.output(index)
            assert "`model.dim` is 16 on the chief and 17 on worker 1" in output
            assert "Traceback" not in output
    assert not (tmp_path / "run").exists()
