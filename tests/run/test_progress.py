"""What a training says while it runs."""

import logging
import re

import keras
import numpy as np
import pytest

from keras_dml.console import logger
from keras_dml.run import progress as progress_module
from keras_dml.run.progress import TrainingProgress, legend
from keras_dml.run.recorder import RunState

LINE = re.compile(
    r"epoch  3/12  loss 0\.412  val MAP@R 0\.734 ★ best  0:00  left 0:00"
)


@pytest.fixture
def lines(caplog):
    """A list that fills with log records."""
    found = []
    handler = logging.Handler()
    handler.emit = found.append
    logger.addHandler(handler)
    caplog.set_level(logging.DEBUG, "keras_dml")
    yield found
    logger.removeHandler(handler)


def progress(best=0.5, later=4, monitor="val_map@r"):
    """The third epoch of a run; one phase of six epochs, and one of four."""
    state = RunState(epoch=0, best=best, history=[{}, {}])
    return TrainingProgress(state, "main/train", 6, 5, later, monitor)


def train(callback, logs):
    callback.on_epoch_begin(0)
    for step in range(5):
        callback.on_train_batch_end(step, {"loss": 1.0})
    callback.on_epoch_end(0, logs)


def test_an_epoch_is_one_line_and_all_its_metrics_are_details(lines):
    logs = {"loss": 0.4123, "val_map@r": 0.734, "val_effective_dim": 97.72}
    train(progress(), logs)
    details, line = lines
    assert LINE.fullmatch(line.getMessage())
    assert details.levelno == logging.DEBUG
    assert "val_effective_dim 97.72" in details.getMessage()


@pytest.mark.parametrize("best", [0.8, None])
def test_only_the_best_so_far_has_a_star(lines, best):
    train(progress(best), {"loss": 0.4, "val_map@r": 0.734})
    assert ("★" in lines[1].getMessage()) == (best is None)


def test_an_epoch_without_validation_keeps_the_columns(lines):
    train(progress(), {"loss": 0.4, "val_map@r": 0.734})
    train(progress(), {"loss": 0.4})
    with_value, without = lines[1].getMessage(), lines[3].getMessage()
    assert "val" not in without
    assert with_value.index("left") == without.index("left")


@pytest.mark.parametrize("monitor", [None, "val_map@r"])
def test_the_legend_names_what_a_line_of_an_epoch_shows(lines, monitor):
    train(progress(monitor=monitor), {"loss": 0.4, "val_map@r": 0.734})
    line, words = lines[1].getMessage(), legend(monitor)
    for part in ("loss", "val MAP@R", "★", "left"):
        assert (part in words) == (part in line), part


def told(lines):
    return [
        line.getMessage()
        for line in lines
        if line.getMessage().startswith("Time ")
    ]


def test_the_first_steps_tell_how_long_the_training_takes(lines, monkeypatch):
    """7 epochs of 20 steps, 2 s each, and validations of 20 s together."""
    clock = iter([0.0, 30.0, 32.0, 34.0, *range(36, 400, 2)])
    monkeypatch.setattr(
        progress_module.time, "perf_counter", lambda: next(clock)
    )
    state = RunState(history=[{}, {}, {}])
    callback = TrainingProgress(
        state, "main/train", 6, 20, later=1, validation_seconds=20.0
    )
    for _ in range(2):
        callback.on_epoch_begin(0)
        for step in range(20):
            callback.on_train_batch_end(step, {"loss": 1.0})
            assert len(told(lines)) == (step >= 8 or len(lines) > 1)
        callback.on_epoch_end(0, {"loss": 1.0})
    assert told(lines) == [
        "Time      about 5 min of training, by the pace of the first steps; "
        "then it is\n          tested"
    ]


@pytest.mark.parametrize(
    ("epochs", "steps", "first", "words"),
    [(5, 4, 0, "about 50 s"), (6, 1, 1, "about 20 s")],
    ids=["four steps", "one step, which traces the graph"],
)
def test_epochs_of_few_steps_tell_the_time_once_and_early(
    lines, monkeypatch, epochs, steps, first, words
):
    """Steps of 2 s, and 10 s of validation: no epoch has nine steps."""
    clock = iter([0.0, *range(30, 400, 2)])
    monkeypatch.setattr(
        progress_module.time, "perf_counter", lambda: next(clock)
    )
    callback = TrainingProgress(
        RunState(), "main/train", epochs, steps, validation_seconds=10.0
    )
    for epoch in range(epochs):
        callback.on_epoch_begin(epoch)
        for step in range(steps):
            callback.on_train_batch_end(step, {"loss": 1.0})
        assert len(told(lines)) == (epoch >= first)
        callback.on_epoch_end(epoch, {"loss": 1.0})
        callback.state.history.append({})
    assert words in told(lines)[0]


def test_the_time_left_leaves_out_the_tracing_of_the_first_step(
    lines, monkeypatch
):
    """A graph that took 20 s was counted once for every epoch to come."""
    clock = iter([0.0, 20.0, 21.0, 22.0, 23.0, 24.0, 24.0, *range(24, 31)])
    monkeypatch.setattr(
        progress_module.time, "perf_counter", lambda: next(clock)
    )
    callback = TrainingProgress(RunState(), "main/train", 6, 5)
    train(callback, {"loss": 0.4})
    callback.state.history.append({})
    assert lines[1].getMessage().endswith("0:24  left 0:25")


def test_a_time_that_was_told_is_not_told_again(lines):
    train(progress(), {"loss": 0.4})
    callback = TrainingProgress(RunState(), "main/train", 6, 20)
    callback.on_epoch_begin(0)
    for step in range(20):
        callback.on_train_batch_end(step, {"loss": 1.0})
    callback.on_epoch_end(0, {"loss": 1.0})
    assert told(lines) == []


def test_the_time_is_told_without_changing_the_training(lines):
    """The same steps, draws and weights, bit for bit."""
    results = []
    for validations in (None, 0.0):
        keras.utils.set_random_seed(0)
        model = keras.Sequential(
            [
                keras.Input((4,)),
                keras.layers.Dropout(0.5),
                keras.layers.Dense(3),
            ]
        )
        model.compile("adam", "mse")
        callback = TrainingProgress(
            RunState(), "main/train", 2, 12, validation_seconds=validations
        )
        rows = np.random.default_rng(0).normal(size=(48, 4)).astype("float32")
        history = model.fit(
            rows,
            rows[:, :3],
            batch_size=4,
            epochs=2,
            verbose=0,
            callbacks=[callback],
        )
        results.append((model.get_weights(), history.history))
    assert len(told(lines)) == 1
    (weights, losses), (again, others) = results
    assert losses == others
    for one, other in zip(weights, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_nothing_is_left_after_the_last_epoch(lines):
    state = RunState(epoch=5, history=[{}] * 5)
    train(TrainingProgress(state, "main/train", 6, 5), {"loss": 0.4})
    assert lines[1].getMessage() == "epoch 6/6  loss 0.400  0:00"
