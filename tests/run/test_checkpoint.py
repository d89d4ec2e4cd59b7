import keras
import numpy as np
import pytest

from keras_dml.errors import PreemptedError, RunError
from keras_dml.run.checkpoint import load_checkpoint, save_checkpoint


def variables(offset=0.0):
    return [
        keras.Variable(np.arange(3.0) + offset, name="first"),
        keras.Variable(np.full((2, 2), offset), name="second"),
        keras.Variable(7, dtype="int32", name="count"),
    ]


def test_values_paths_and_state_come_back(tmp_path):
    path = tmp_path / "last.npz"
    saved = variables(0.25)
    save_checkpoint(path, {"model": saved}, {"epoch": 3, "best": None})
    restored = variables()
    checkpoint = load_checkpoint(path)
    checkpoint.restore("model", restored)
    for old, new in zip(saved, restored, strict=True):
        np.testing.assert_array_equal(old, new)
    assert checkpoint.state == {"epoch": 3, "best": None}


def test_other_variables_are_refused(tmp_path):
    path = tmp_path / "last.npz"
    save_checkpoint(path, {"model": variables()})
    checkpoint = load_checkpoint(path)
    with pytest.raises(RunError, match="holds 3 variables, 2 were expected"):
        checkpoint.restore("model", variables()[:2])
    with pytest.raises(RunError, match="only their order"):
        checkpoint.restore("model", variables()[::-1])
    with pytest.raises(RunError, match="holds 0 variables"):
        checkpoint.restore("optimizer", variables())


def test_other_shapes_are_refused(tmp_path):
    path = tmp_path / "last.npz"
    save_checkpoint(path, {"model": [keras.Variable([1.0], name="a")]})
    with pytest.raises(RunError, match=r"has shape \(2,\), saved was \(1,\)"):
        load_checkpoint(path).restore(
            "model", [keras.Variable([1.0, 2.0], name="a")]
        )


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04"])
def test_damaged_files_are_named(tmp_path, content):
    path = tmp_path / "last.npz"
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"last.npz is not a readable"):
        load_checkpoint(path)


def test_a_signal_while_it_is_read_is_no_damage(tmp_path, monkeypatch):
    """A SIGTERM was reported as a file to restore, and ended with 1."""
    path = tmp_path / "last.npz"
    save_checkpoint(path, {"model": variables()})

    def stopped(file):
        raise PreemptedError("The run was stopped by SIGTERM.")

    monkeypatch.setattr("keras_dml.run.checkpoint.open_npz", stopped)
    with pytest.raises(PreemptedError, match="stopped by SIGTERM"):
        load_checkpoint(path)


def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "last.npz"
    save_checkpoint(path, {"model": variables(1.0)}, {"epoch": 1})

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="No space"):
        save_checkpoint(path, {"model": variables(2.0)}, {"epoch": 2})
    monkeypatch.undo()
    assert load_checkpoint(path).state == {"epoch": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["last.npz"]
