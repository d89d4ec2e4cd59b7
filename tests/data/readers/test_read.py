import pytest

from keras_dml.data.readers import (
    READERS,
    read,
    source_name,
    whole_path,
    whole_source,
    whole_weights,
)
from keras_dml.errors import UsageError


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("omniglott", "omniglot"), ("car196", "cars196"), ("digit", "digits")],
)
def test_an_unknown_name_gets_the_nearest(name, nearest):
    with pytest.raises(UsageError, match=f"did you mean {nearest}"):
        read(name)


def test_an_unknown_name_says_what_a_source_is():
    with pytest.raises(UsageError) as caught:
        read("zzzzzz")
    message = str(caught.value)
    for word in (*READERS, "folder", "CSV", "tfds:NAME"):
        assert word in message


@pytest.mark.parametrize("name", ["cars196", "cub200", "sop", "inshop"])
def test_a_named_set_says_what_it_needs(name, tmp_path):
    with pytest.raises(UsageError, match=f"`{name}` is read from a folder"):
        read(name)
    with pytest.raises(UsageError, match=f"keras-dml prepare {name}"):
        read(name, tmp_path)


@pytest.mark.parametrize(
    ("ending", "message"), [("", "is no known data set"), (".csv", "CSV file")]
)
def test_a_name_longer_than_a_file_can_have(ending, message):
    with pytest.raises(UsageError, match=message):
        read("x" * 300 + ending)


@pytest.mark.parametrize("whole", [whole_path, whole_source, whole_weights])
def test_an_absent_path_stays_as_it_is(whole, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("absent", "x" * 300):
        assert whole(name) == name
    (tmp_path / "there").touch()
    assert whole("there") == str(tmp_path / "there")


def test_a_source_has_a_name(tmp_path, monkeypatch):
    """The results of `fit .` said nothing of their data."""
    monkeypatch.chdir(tmp_path)
    sources = {".": tmp_path.name, "a/b": "b", "digits": "digits"}
    assert {source: source_name(source) for source in sources} == sources


def test_a_folder_called_like_a_data_set_is_not_read(
    tmp_path, monkeypatch, caplog
):
    """And that is said, once."""
    monkeypatch.chdir(tmp_path)
    assert read("digits").name == "digits"
    assert not caplog.text
    (tmp_path / "digits").mkdir()
    for _ in range(2):
        assert read("digits").name == "digits"
    assert caplog.text.count("`digits` is the data set of that name") == 1
    assert "Write `./digits` for the folder" in caplog.text
