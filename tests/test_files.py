import pytest

from keras_dml.files import replacing, write_text


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
