"""SIGTERM and Ctrl-C: noted in a training, heeded at once elsewhere."""

import logging
import os
import signal
import threading

import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.errors import PreemptedError, RunError
from keras_dml.run import fit as train
from keras_dml.run import phases
from keras_dml.run.batches import make_sampler
from keras_dml.run.checkpoint import load_checkpoint
from keras_dml.run.preemption import Preemption, heeding
from keras_dml.run.recorder import RunRecorder


def terminate():
    os.kill(os.getpid(), signal.SIGTERM)


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_a_signal_is_noted_where_somebody_looks():
    before = signal.getsignal(signal.SIGTERM)
    with heeding(signal.SIGTERM) as preemption:
        with preemption.waits():
            assert not preemption.requested
            terminate()
            assert preemption.requested
        with pytest.raises(PreemptedError, match="stopped by SIGTERM"):
            terminate()
    assert signal.getsignal(signal.SIGTERM) is before


def test_ctrl_c_is_noted_once_and_heeded_the_second_time(caplog):
    caplog.set_level(logging.INFO, "keras_dml")
    before = signal.getsignal(signal.SIGINT)
    with heeding(signal.SIGTERM, signal.SIGINT) as preemption:
        with preemption.waits():
            press_ctrl_c()
            assert preemption.requested and preemption.interrupted
            # A supervisor that gets impatient does not stop the saving.
            terminate()
            with pytest.raises(KeyboardInterrupt):
                press_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            preemption.stop("epoch 3")
    assert signal.getsignal(signal.SIGINT) is before
    first, last = caplog.messages[0], caplog.messages[-1]
    assert first.startswith("Stopping after this step. Press Ctrl-C again")
    assert last == "Stopped. Pass `resume=True` to go on with it, from epoch 3."


def test_ctrl_c_elsewhere_stops_at_once():
    with heeding(signal.SIGINT), pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def test_another_thread_hears_no_signal():
    found = []

    def run():
        with heeding(signal.SIGTERM) as preemption:
            found.append(preemption)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert isinstance(found[0], Preemption)


def settings():
    """Heats up and lowers the rates at the start of the second epoch."""
    constant = [
        f"optimizer.{group}.{setting}"
        for group in ("backbone", "head", "proxies")
        for setting in ("schedule=constant", "warmup_steps=0", "lr=1e-3")
    ]
    return resolve(
        "hbn",
        "digits",
        flags={"model": {"backbone": "small_cnn", "dim": 8}},
        overrides=[
            "stages=[{phases: [{epochs: 3, heat: "
            "{epoch: 1, scale: 4.0, lr_factor: 0.1}}]}]",
            "sampling.steps_per_epoch=4",
            *constant,
        ],
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The last checkpoint of a run that was left alone."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    train.fit(settings(), folder)
    return load_checkpoint(folder / "checkpoints" / "last.npz")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "stop", "error"),
    [
        (1, terminate, PreemptedError),
        (3, terminate, PreemptedError),
        (1, press_ctrl_c, KeyboardInterrupt),
    ],
)
def test_stopped_in_an_epoch_it_ends_as_if_it_had_not(
    tmp_path, monkeypatch, whole, step, stop, error
):
    """In its middle, where it is saved, and in the last step of it."""

    def at_step(self, batch, logs=None):
        if (self.state.epoch, batch) == (1, step):
            stop()

    with monkeypatch.context() as patch:
        patch.setattr(
            RunRecorder, "on_train_batch_begin", at_step, raising=False
        )
        with pytest.raises(error):
            train.fit(settings(), tmp_path / "part")
    log = (tmp_path / "part" / "log.txt").read_text()
    assert "Stopping after this step" in log or stop is terminate
    last = tmp_path / "part" / "checkpoints" / "last.npz"
    state = load_checkpoint(last).state
    assert (state["epoch"], state["step"]) == ((1, 2) if step == 1 else (2, 0))
    train.fit(settings(), tmp_path / "part", resume=True)
    actual = load_checkpoint(last)
    for group in ("model", "optimizer"):
        for a, b in zip(actual.values[group], whole.values[group], strict=True):
            np.testing.assert_array_equal(a, b)
    changing = ("loss", "learning_rate_proxies", "temperature", "epoch")
    rows = [
        [{key: row[key] for key in changing} for row in one.state["history"]]
        for one in (actual, whole)
    ]
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_an_epoch_with_fewer_steps_than_were_done_does_not_go_on(
    tmp_path, monkeypatch
):
    """Keras would begin an epoch of no steps, which has no end."""

    def stop_at_step_1(self, batch, logs=None):
        if batch == 1:
            terminate()

    def fewer(*arguments, **options):
        draw = make_sampler(*arguments, **options)
        return lambda epoch: draw(epoch)[:2]

    with monkeypatch.context() as patch:
        patch.setattr(
            RunRecorder, "on_train_batch_begin", stop_at_step_1, raising=False
        )
        with pytest.raises(PreemptedError):
            train.fit(settings(), tmp_path)
    monkeypatch.setattr(phases, "make_sampler", fewer)
    with pytest.raises(RunError, match="stopped after step 2"):
        train.fit(settings(), tmp_path, resume=True)
