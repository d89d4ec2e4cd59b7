import json
import subprocess
import sys

import pytest

from keras_dml.errors import UsageError
from keras_dml.files import ClaimedFolder, csv_text, replacing, write_text


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


class Album(ClaimedFolder):
    kind = "an album"
    record_name = "album.json"
    maker = "tests"
    passing = frozenset({"covers"})


def claim(path, **settings):
    folder = Album(path)
    folder.lock()
    write_text(folder.record, json.dumps({"made_by": "tests", **settings}))
    return folder


def test_a_folder_is_free_until_something_else_is_in_it(tmp_path):
    folder = Album(tmp_path / "album")
    folder.check_free()
    (folder.path / "covers").mkdir(parents=True)
    folder.check_free()
    with claim(folder.path):
        folder.check_free()
        assert folder.exists
    (folder.path / "photo.jpg").touch()
    folder.check_free()
    folder.record.unlink()
    with pytest.raises(UsageError, match="is not an album.*`album.json"):
        folder.check_free()


@pytest.mark.parametrize("content", ["{}", "[]", "half", '{"made_by": "x"}'])
def test_the_record_of_another_maker_is_foreign(tmp_path, content):
    (tmp_path / "album.json").write_text(content)
    assert not Album(tmp_path).exists
    with pytest.raises(UsageError, match="exists and is not an album"):
        Album(tmp_path).check_free()


def test_a_file_in_the_place_of_the_folder_is_foreign(tmp_path):
    (tmp_path / "album").touch()
    with pytest.raises(UsageError, match="exists and is not an album"):
        Album(tmp_path / "album").check_free()


def test_the_first_differences_are_named(tmp_path):
    folder = Album(tmp_path)
    folder.check_same({"a": {"b": 1}}, {"a": {"b": 1}})
    with pytest.raises(UsageError, match=r"`a.b` was 1, received 2\. Go on"):
        folder.check_same({"a": {"b": 1}}, {"a": {"b": 2}})
    many = {f"k{number}": number for number in range(9)}
    with pytest.raises(UsageError, match="`k3` was None.*and 5 more"):
        folder.check_same({}, many)


HOLD = """
import sys
from tests.test_files import Album
Album(sys.argv[1]).lock()
"""


def test_one_process_writes_and_its_end_lets_the_next_in(tmp_path):
    with claim(tmp_path) as folder:
        folder.lock()
        other = [sys.executable, "-c", HOLD, tmp_path]
        done = subprocess.run(other, capture_output=True, text=True)
        assert "Another process is writing" in done.stderr
    assert subprocess.run(other).returncode == 0
    folder.lock()
    folder.close()
    folder.close()
