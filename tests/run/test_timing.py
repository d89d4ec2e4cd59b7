"""Seconds of the parts of a command."""

import time

import pytest

from keras_dml.run import timing
from keras_dml.run.timing import Timing, command_of_process, process_age


@pytest.fixture(name="clock")
def one_that_stands_still(monkeypatch):
    seconds = [100.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: seconds[0])
    return seconds


def test_each_second_counts_for_the_innermost_part(clock):
    timed = Timing()
    clock[0] += 1
    with timed.part("steps"):
        clock[0] += 2
        with timed.part("validation"):
            clock[0] += 4
        clock[0] += 8
        with timed.part("validation"):
            clock[0] += 16
    clock[0] += 32
    assert timed.rounded() == {
        "start": 0.0,
        "other": 33.0,
        "steps": 10.0,
        "validation": 20.0,
    }
    assert timed.elapsed == sum(timed.seconds.values()) == 63.0


def test_a_part_that_fails_counts_too(clock):
    timed = Timing()
    with pytest.raises(KeyError), timed.part("read"):
        clock[0] += 3
        raise KeyError
    assert timed.rounded()["read"] == 3.0
    assert timed.elapsed == 3.0


def test_a_command_begins_with_its_process_and_counts_once(clock, monkeypatch):
    """The second training of a command does not begin with the process."""
    monkeypatch.setattr(timing, "process_age", lambda: 5.0)
    with command_of_process():
        clock[0] += 2
        assert Timing().seconds == {"start": 7.0}
        assert Timing().seconds == {"start": 0.0}


def test_a_training_after_a_command_does_not_begin_with_it(clock, monkeypatch):
    """A program may call both, long after it began."""
    monkeypatch.setattr(timing, "process_age", lambda: 5000.0)
    with command_of_process():
        pass
    assert Timing().elapsed == 0.0


def test_a_process_ages():
    before = process_age()
    time.sleep(0.05)
    assert before > 0
    assert 0.01 < process_age() - before < 5
