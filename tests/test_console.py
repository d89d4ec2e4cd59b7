import logging
import os
import sys

import pytest

from keras_dml.console import (
    format_table,
    keeping_log,
    logger,
    showing_log,
    track,
    without_native_output,
)


def test_columns_of_a_table_are_aligned():
    lines = format_table([("group", "rate"), ("head", 0.5)]).splitlines()
    assert lines == ["  group  rate", "  head   0.5"]


def test_log_lines_go_to_the_file_and_to_standard_error(tmp_path, capfd):
    path = tmp_path / "log.txt"
    with keeping_log() as append_to, showing_log():
        append_to(path)
        logger.info("first")
        assert "first" in path.read_text()
    logger.info("second")
    assert "second" not in path.read_text()
    assert capfd.readouterr().err.count("first") == 1


def test_a_file_made_later_holds_the_lines_before_it(tmp_path):
    """Warnings on the images came before the run's folder, and were lost."""
    path = tmp_path / "run" / "log.txt"
    path.parent.mkdir()
    path.write_text("an earlier run\n")
    with keeping_log() as append_to:
        logger.warning("two images are the same")
        logger.debug("in detail")
        append_to(path)
        logger.info("begun")
    earlier, *lines = path.read_text().splitlines()
    assert earlier == "an earlier run"
    assert [line.split(maxsplit=2)[2] for line in lines] == [
        "WARNING two images are the same",
        "DEBUG in detail",
        "INFO begun",
    ]


def test_without_a_file_lines_are_dropped(tmp_path, capfd):
    with keeping_log():
        logger.warning("nobody asked for a file")
    assert not any(tmp_path.iterdir())
    assert capfd.readouterr().err == ""


def test_a_line_that_is_shown_is_not_shown_twice(capfd):
    with showing_log(), showing_log():
        logger.info("once")
    assert capfd.readouterr().err == "once\n"


def test_details_are_shown_on_demand(capfd):
    for level in (logging.INFO, logging.DEBUG):
        with showing_log(level):
            logger.debug("all %d numbers", 12)
        shown = capfd.readouterr().err
        assert shown == "all 12 numbers\n" * (level == logging.DEBUG)


def test_lines_for_a_program_are_whole_and_plain(capfd):
    long = "a [bold]name[/bold] " * 20
    with showing_log():
        logger.warning(long.strip())
    assert capfd.readouterr().err == f"Warning: {long.strip()}\n"


def test_logging_is_put_back(tmp_path):
    before = (logger.level, logger.propagate, list(logger.handlers))
    with (
        pytest.raises(RuntimeError),
        keeping_log() as append_to,
        showing_log(),
    ):
        append_to(tmp_path / "log.txt")
        raise RuntimeError
    assert (logger.level, logger.propagate, list(logger.handlers)) == before
    assert logging.getLogger("keras_dml") is logger


def test_native_output_is_hidden_and_comes_back(capfd):
    with without_native_output():
        os.write(2, b"noise")
    os.write(2, b"news")
    assert capfd.readouterr().err == "news"


def test_tracking_yields_everything():
    assert list(track([1, 2], "counting", 2)) == [1, 2]


def test_a_closed_standard_error_is_left_closed(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with without_native_output():
        assert sys.stderr is None
    assert sys.stderr is None


@pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="Files are counted there."
)
def test_an_error_leaves_no_file_open():
    """Each exception kept two files open."""
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(ValueError, match="here"), without_native_output():
            raise ValueError("here")
    assert len(os.listdir("/proc/self/fd")) == before
