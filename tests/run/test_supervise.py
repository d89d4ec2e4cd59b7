"""Works in other processes, and how they are stopped."""

import logging

import pytest

from keras_dml.run.supervise import supervise


class Work:
    """A training that is interrupted by the person at the keyboard."""

    name, exit_code = "work", None

    def __init__(self, told):
        self.told = told

    def poll(self):
        raise KeyboardInterrupt

    def stop(self):
        self.told.append("stop")

    def wait(self):
        self.told.append("wait")


def test_ctrl_c_lets_the_trainings_save_and_says_how_to_go_on(caplog):
    told = []
    works = iter([Work(told), Work(told), None])
    with (
        caplog.at_level(logging.INFO, "keras_dml"),
        pytest.raises(KeyboardInterrupt),
    ):
        supervise(works.__next__, told.append, processes=2)
    assert told == ["stop", "stop", "wait", "wait"]
    (said,) = caplog.messages
    assert "saved" in said and "same command again" in said
