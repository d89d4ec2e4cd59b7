"""How the process of a training ends."""

import subprocess
import time

import pytest
import tensorflow as tf

import keras_dml.run.fit
from keras_dml.config import dump_run_config, resolve
from keras_dml.errors import UsageError
from keras_dml.run import processes
from keras_dml.run.supervise import DISK_FULL

FULL = "/runs/x; No space left on device"


class LeftError(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Runs the process in this one; a training raises what it is given."""
    settings = tmp_path / "config.yaml"
    settings.write_text(dump_run_config(resolve("triplet", "digits")))

    def leave(code):
        raise LeftError(code)

    def call(error):
        def fit(*arguments, **options):
            raise error

        monkeypatch.setattr(keras_dml.run.fit, "fit", fit)
        processes.main(str(settings), str(tmp_path / "run"))

    monkeypatch.setattr(processes, "_stop_with_starter", lambda: None)
    monkeypatch.setattr(processes.os, "_exit", leave)
    return call


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(28, "No space left on device"), DISK_FULL),
        # TensorFlow and HDF5 have errors of their own.
        (tf.errors.ResourceExhaustedError(None, None, FULL), DISK_FULL),
        (RuntimeError(f"file write failed: {FULL}"), DISK_FULL),
        (UsageError("Received: nothing."), 2),
    ],
)
def test_the_exit_code_says_why_a_training_ended(train, error, code, capsys):
    with pytest.raises(LeftError) as left:
        train(error)
    assert left.value.args == (code,)
    assert capsys.readouterr().err.startswith("Error: ")


@pytest.mark.parametrize("error", [ValueError("a bug"), OSError(13, "no")])
def test_other_errors_show_where_they_come_from(train, error):
    with pytest.raises(type(error)) as raised:
        train(error)
    assert raised.value is error


@pytest.mark.slow
def test_a_training_stops_with_the_process_that_started_it(
    tmp_path, monkeypatch
):
    """A real process, where others of these tests are forks."""
    monkeypatch.setattr(processes, "subprocess", subprocess)
    config = resolve(
        "triplet",
        "digits",
        flags={"model": {"backbone": "small_cnn"}},
        overrides=[
            "sampling.steps_per_epoch=2",
            "stages=[{phases: [{epochs: 999}]}]",
        ],
    )
    log, history = tmp_path / "log.txt", tmp_path / "run" / "history.csv"
    process = processes.start_training(config, history.parent, log, threads=1)
    until = time.monotonic() + 300
    while not history.is_file():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)
    process.stdin.close()
    assert process.wait(60) == 143, log.read_text()
