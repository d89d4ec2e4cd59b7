import csv
import errno
import io

import pytest

from keras_dml.files import (
    csv_text,
    is_full_disk,
    replacing,
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
