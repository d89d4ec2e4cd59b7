"""What a training says while it runs."""

import logging
import re

import pytest

from keras_dml.console import logger
from keras_dml.run.progress import TrainingProgress
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


def test_nothing_is_left_after_the_last_epoch(lines):
    state = RunState(epoch=5, history=[{}] * 5)
    train(TrainingProgress(state, "main/train", 6, 5), {"loss": 0.4})
    assert lines[1].getMessage() == "epoch 6/6  loss 0.400  0:00"
