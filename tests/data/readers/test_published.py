import os

import pytest

from keras_dml.data.readers.published import exist
from keras_dml.errors import UsageError


def test_files_that_exist_are_marked(tmp_path):
    for name in ("0.jpg", ".1.jpg"):
        (tmp_path / name).touch()
    names = ["0.jpg", ".1.jpg", "2.jpg", "none/0.jpg"]
    found = exist([str(tmp_path / name) for name in names])
    assert found.tolist() == [True, True, False, False]


def test_a_folder_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(13, "Permission denied")

    # The administrator, as which tests may run, is refused nothing.
    for name in ("listdir", "scandir"):
        monkeypatch.setattr(os, name, refuse)
    with pytest.raises(UsageError, match="must be readable. Received: Perm"):
        exist([str(tmp_path / "0.jpg")])
