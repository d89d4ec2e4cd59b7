import logging
import os

import pytest

from keras_dml.console import (
    format_table,
    logger,
    logging_to,
    track,
    without_native_output,
)


def test_columns_of_a_table_are_aligned():
    lines = format_table([("group", "rate"), ("head", 0.5)]).splitlines()
    assert lines == ["  group  rate", "  head   0.5"]


def test_log_lines_go_to_the_file_and_to_standard_error(tmp_path, capfd):
    path = tmp_path / "log.txt"
    with logging_to(path):
        logger.info("first")
    logger.info("second")
    assert "first" in path.read_text()
    assert "second" not in path.read_text()
    assert capfd.readouterr().err.count("first") == 1


def test_a_line_that_is_shown_is_not_shown_twice(tmp_path, capfd):
    path = tmp_path / "log.txt"
    with logging_to(), logging_to(path):
        logger.info("once")
    assert capfd.readouterr().err == "once\n"
    assert path.read_text().count("once") == 1


def test_details_go_to_the_file_and_on_demand_to_the_screen(tmp_path, capfd):
    path = tmp_path / "log.txt"
    for level in (logging.INFO, logging.DEBUG):
        with logging_to(path, level):
            logger.debug("all %d numbers", 12)
        shown = capfd.readouterr().err
        assert shown == "all 12 numbers\n" * (level == logging.DEBUG)
    assert path.read_text().count("DEBUG all 12 numbers") == 2


def test_lines_for_a_program_are_whole_and_plain(capfd):
    long = "a [bold]name[/bold] " * 20
    with logging_to():
        logger.warning(long.strip())
    assert capfd.readouterr().err == f"Warning: {long.strip()}\n"


def test_logging_is_put_back(tmp_path):
    before = (logger.level, logger.propagate, list(logger.handlers))
    with pytest.raises(RuntimeError), logging_to(tmp_path / "log.txt"):
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
        pass


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
