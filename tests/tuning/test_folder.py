import pytest

from keras_dml.config import resolve
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.errors import UsageError
from keras_dml.tuning.folder import TuningFolder, Worker


def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path):
    (tmp_path / "of_a_killed_one.lock").touch()
    living, other = Worker(tmp_path), Worker(tmp_path)
    names = {"all.lock", f"{living.name}.lock", f"{other.name}.lock"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert other.lives(living.name)
    living.close()
    assert not other.lives(living.name)
    other.close()
    assert [path.name for path in tmp_path.iterdir()] == ["all.lock"]


def test_a_tuning_goes_on_after_a_setting_was_added(tmp_path):
    """What a version does not know yet has its default in the next."""
    section = TuningConfig(kind="tpe", trials=3, space={"model.dim": [8, 16]})
    reference = resolve("triplet", "digits")
    folder = TuningFolder(tmp_path)
    folder.claim(section, reference)
    text = folder.record.read_text()
    assert "    quarter_turns: false\n" in text
    folder.record.write_text(text.replace("    quarter_turns: false\n", ""))
    folder.claim(section, reference)
    with pytest.raises(UsageError, match=r"`run\.seed` was 0, received 1"):
        folder.claim(section, reference.changed(seed=1))
    folder.record.write_text("run: 1")
    with pytest.raises(UsageError, match="must hold the settings of a tuning"):
        folder.claim(section, reference)


def test_the_same_photos_are_the_same_by_any_path(tmp_path, monkeypatch):
    photos = tmp_path / "photos"
    photos.mkdir()
    monkeypatch.chdir(tmp_path)
    section = TuningConfig(kind="tpe", trials=3, space={"model.dim": [8, 16]})
    folder = TuningFolder(tmp_path / "tuning")
    reference = resolve("triplet", "digits")
    for source in ("photos", "./photos", str(photos)):
        folder.claim(section, reference.changed(data={"source": source}))
