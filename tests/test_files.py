import csv
import errno
import io
import json
import os
import threading
from pathlib import Path

import pytest

from keras_dml.files import (
    csv_text,
    is_full_disk,
    is_partial,
    remove_partial,
    replacing,
    write_json,
    write_text,
)


def test_a_failure_in_the_middle_leaves_the_old_file(tmp_path):
    path = tmp_path / "metrics.json"
    write_text(path, "old")
    with pytest.raises(OSError, match="full"), replacing(path) as temporary:
        temporary.write_text("half of the new")
        raise OSError("full")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["metrics.json"]


def test_the_file_is_replaced_at_the_end_only(tmp_path):
    path = tmp_path / "weights.npz"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
        assert temporary.suffix == path.suffix
    assert path.read_text() == "new"


def test_of_two_writers_at_once_each_leaves_a_whole_file(tmp_path):
    """`search` and `evaluate` of one run write the same cache."""
    path, failed = tmp_path / "cache.json", []
    content = list(range(2000))

    def write():
        try:
            for _ in range(50):
                write_json(path, content)
        except OSError as error:
            failed.append(error)

    write_json(path, content)
    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert json.loads(path.read_text()) == content
    assert not failed
    assert [file.name for file in tmp_path.iterdir()] == ["cache.json"]


def test_what_is_committed_may_be_written(tmp_path, monkeypatch):
    """Windows refuses to commit what was opened for reading."""
    fcntl = pytest.importorskip("fcntl")
    modes = []

    def commit(number):
        modes.append(fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE)

    monkeypatch.setattr(os, "fsync", commit)
    write_text(tmp_path / "metrics.json", "{}")
    assert modes == [os.O_RDWR]


def test_a_killed_writer_is_known_by_its_file_and_cleaned_up_after(tmp_path):
    path = tmp_path / "embedder.weights.h5"
    with replacing(path) as temporary:
        assert temporary.name.endswith(".weights.h5")
        assert is_partial(temporary.name, path)
        for other in ("embedder.h5", "weights.h5", "x.embedder.weights.h5"):
            assert not is_partial(temporary.name, Path(other))
        temporary.write_text("new")
    left, writing = tmp_path / ".a.00.partial.npz", tmp_path / ".b.11.partial"
    for one in (left, writing):
        one.touch()
    os.utime(left, (0, 0))
    remove_partial(tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {
        path.name,
        writing.name,
    }


def test_rows_become_lines_of_csv():
    rows = [["run", "value"], ["a, b", 0.5], ["c", None]]
    assert csv_text(rows) == 'run,value\n"a, b",0.5\nc,\n'


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
def test_ends_of_lines_in_a_cell_end_no_line(end):
    rows = [["id", f"a{end}b"], [f"{end}c", "d"]]
    text = csv_text(rows)
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows


def test_a_full_disk_is_known_by_number_and_by_message():
    text = "{{function_node x}} out/variables; No space left on device [Op:X]"
    assert is_full_disk(OSError(errno.ENOSPC, "full"))
    assert is_full_disk(RuntimeError(text))
    try:
        try:
            raise OSError(errno.EDQUOT, "quota")
        except OSError:
            raise ValueError("the file was not written") from None
    except ValueError as error:
        assert is_full_disk(error)
    assert not is_full_disk(OSError(errno.EACCES, "no"))
    assert not is_full_disk(None)
