import errno
import json
import os
import subprocess
import sys

import pytest

from keras_dml import files
from keras_dml.claimed_folder import ClaimedFolder
from keras_dml.errors import UsageError
from keras_dml.files import is_locked, write_text
from tests.conftest import ROOT


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


@pytest.mark.parametrize("above", ["file", "read-only folder"])
def test_a_folder_that_cannot_be_made_is_refused_first(
    tmp_path, monkeypatch, above
):
    """After minutes of work it was found that nothing could be written."""
    place = tmp_path / "above"
    if above == "file":
        place.touch()
    else:
        place.mkdir()
        monkeypatch.setattr(os, "access", lambda path, mode: path != place)
    with pytest.raises(UsageError, match=r"no folder to write to.*`output`"):
        Album(place / "new" / "album").check_free()
    assert not (place / "new").exists()


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
from tests.test_claimed_folder import Album
Album(sys.argv[1]).lock()
"""


def test_one_process_writes_and_its_end_lets_the_next_in(tmp_path):
    with claim(tmp_path) as folder:
        folder.lock()
        other = [sys.executable, "-c", HOLD, tmp_path]
        done = subprocess.run(other, cwd=ROOT, capture_output=True, text=True)
        assert "Another process is writing" in done.stderr
    assert subprocess.run(other, cwd=ROOT).returncode == 0
    folder.lock()
    folder.close()
    folder.close()


def test_what_a_kill_leaves_before_the_record_is_taken_over(tmp_path):
    """A run whose first write was killed could neither resume nor start."""
    (tmp_path / "covers" / "large").mkdir(parents=True)
    (tmp_path / "pages" / "empty").mkdir(parents=True)
    (tmp_path / ".lock").touch()
    (tmp_path / ".album.0a1b2c3d.partial.json").write_text('{"made_')
    Album(tmp_path).check_free()
    (tmp_path / "pages" / "empty" / "photo.jpg").touch()
    with pytest.raises(UsageError, match="is not an album"):
        Album(tmp_path).check_free()


def test_a_link_is_no_empty_folder(tmp_path):
    (tmp_path / "album").mkdir()
    (tmp_path / "album" / "photos").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="is not an album"):
        Album(tmp_path / "album").check_free()


def test_a_lock_empties_no_file_that_it_leads_to(tmp_path):
    (tmp_path / "diary").write_text("dear")
    (tmp_path / "album").mkdir()
    (tmp_path / "album" / ".lock").symlink_to(tmp_path / "diary")
    with Album(tmp_path / "album") as folder:
        folder.lock()
    assert (tmp_path / "diary").read_text() == "dear"


@pytest.mark.parametrize(
    ("make", "reason"),
    [(os.mkdir, "Is a directory"), (os.mkfifo, "No such device")],
)
def test_what_is_no_file_is_no_lock(tmp_path, make, reason):
    make(tmp_path / ".lock")
    with pytest.raises(UsageError, match=f"to write to. Received: {reason}"):
        Album(tmp_path).lock()
    assert not is_locked(tmp_path / ".lock")


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_written_to(
    tmp_path, monkeypatch, number
):
    """It was called a folder that cannot be written to."""

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.fcntl, "flock", refuse)
    with files.lock(tmp_path / "lock") as file:
        assert file is not None
    number = errno.EIO
    with pytest.raises(OSError, match="put/output"):
        files.lock(tmp_path / "lock")
