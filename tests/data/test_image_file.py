import os

import pytest

from keras_dml.data.image_file import MAX_BYTES, open_image, reason_unopened


def test_a_file_may_be_opened(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"")
    assert reason_unopened(path) == ""
    (tmp_path / "link.jpg").symlink_to(path)
    assert reason_unopened(tmp_path / "link.jpg") == ""


def test_nothing_else_is(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "loop.jpg").symlink_to("loop.jpg")
    with open(tmp_path / "huge.jpg", "wb") as file:
        file.truncate(MAX_BYTES + 1)
    for path, reason in {
        tmp_path / "pipe.jpg": "it is no regular file",
        tmp_path: "it is no regular file",
        "/dev/zero": "it is no regular file",
        tmp_path / "loop.jpg": "it cannot be read (Too many levels of",
        tmp_path / "no.jpg": "no such file",
        tmp_path / "huge.jpg": "it has 536,870,911 bytes, more than",
        "a\0b": "it cannot be read (embedded null byte)",
    }.items():
        assert reason_unopened(path).startswith(reason), path


def test_the_content_decides(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"P6 1 1 255 \0\0\0")
    with pytest.raises(OSError, match="cannot identify"):
        open_image(path)
