"""Artifacts are whole or absent, and only ours are replaced."""

import json

import keras
import pytest

from keras_dml.errors import UsageError
from keras_dml.export import ExportOptions, artifact, export_litert
from keras_dml.export.artifact import (
    ExportFolder,
    has_unit_rows,
    make_manifest,
    read_manifest,
    replacing_folder,
)
from keras_dml.files import lock
from keras_dml.layers import EmbeddingHead


def write(path, text, force=False):
    with replacing_folder(path, force) as folder:
        (folder / "model").write_text(text)
        (folder / "manifest.json").write_text('{"made_by": "keras-dml"}')


def left(folder):
    return sorted(entry.name for entry in folder.iterdir())


def test_writes_and_replaces_its_own(tmp_path):
    path = tmp_path / "deep" / "saved_model"
    for text in ("first", "second"):
        write(path, text)
        assert (path / "model").read_text() == text
        assert ExportFolder(path).exists
    assert left(path.parent) == ["saved_model"]


def test_a_failure_leaves_the_earlier_export(tmp_path):
    path = tmp_path / "saved_model"
    write(path, "first")
    with (
        pytest.raises(OSError, match="No space"),
        replacing_folder(path) as new,
    ):
        (new / "model").write_text("half")
        raise OSError("No space left on device")
    assert (path / "model").read_text() == "first"
    assert left(tmp_path) == ["saved_model"]


def test_a_failure_leaves_nothing_where_nothing_was(tmp_path):
    with pytest.raises(RuntimeError), replacing_folder(tmp_path / "new"):
        raise RuntimeError
    assert left(tmp_path) == []


def test_what_a_kill_left_behind_is_cleared(tmp_path):
    partial = tmp_path / ".saved_model.partial"
    partial.mkdir()
    (partial / "rubbish").write_text("half")
    write(tmp_path / "saved_model", "whole")
    assert left(tmp_path / "saved_model") == ["manifest.json", "model"]
    assert left(tmp_path) == ["saved_model"]


def test_a_kill_between_the_renamings_loses_nothing(tmp_path):
    path = tmp_path / "saved_model"
    write(path, "first")
    path.rename(tmp_path / ".saved_model.former")
    with pytest.raises(RuntimeError), replacing_folder(path):
        raise RuntimeError
    assert (path / "model").read_text() == "first"


@pytest.mark.parametrize("manifest", [None, "{}", "[]", "no json"])
def test_foreign_folders_need_force(manifest, tmp_path):
    path = tmp_path / "folder"
    path.mkdir()
    (path / "letter.txt").write_text("dear")
    if manifest is not None:
        (path / "manifest.json").write_text(manifest)
    with pytest.raises(UsageError, match="pass `force=True` to replace it"):
        write(path, "new")
    assert (path / "letter.txt").read_text() == "dear"
    write(path, "new", force=True)
    assert json.loads((path / "manifest.json").read_text())
    assert not (path / "letter.txt").exists()


def test_a_file_in_the_way_needs_force(tmp_path):
    path = tmp_path / "file"
    path.write_text("dear")
    with pytest.raises(UsageError, match="is not an export"):
        write(path, "new")
    write(path, "new", force=True)
    assert (path / "model").read_text() == "new"


def test_one_process_at_a_time_writes_an_artifact(tmp_path):
    path = tmp_path / "new" / "saved_model"
    with replacing_folder(path) as folder:
        (folder / "model").write_text("first")
        (folder / "manifest.json").write_text('{"made_by": "keras-dml"}')
        with pytest.raises(UsageError, match="Another process is exporting"):
            write(path, "second")
        assert (folder / "model").read_text() == "first"
        write(path.with_name("onnx"), "beside")
    assert (path / "model").read_text() == "first"
    write(path, "third")
    assert left(path.parent) == ["onnx", "saved_model"]


def test_a_lock_that_is_removed_meanwhile_is_taken_anew(tmp_path, monkeypatch):
    """The former owner removes the file between its opening and its locking."""
    opened = []

    def late(file):
        opened.append(lock(file))
        if len(opened) == 1:
            file.unlink()
        return opened[-1]

    monkeypatch.setattr(artifact, "lock", late)
    write(tmp_path / "saved_model", "whole")
    assert [file.closed for file in opened] == [True, True]
    assert left(tmp_path) == ["saved_model"]


def test_an_empty_folder_is_free(tmp_path):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty", "new")
    assert ExportFolder(tmp_path / "empty").exists


IMAGE = {"height": 8, "width": 8, "channels": 3, "resize": 8, "squash": False}
WHOLE = {
    "made_by": "keras-dml",
    "format": "litert",
    "image": IMAGE,
    "embedding": {"dim": 4, "unit_length": True},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image": []}, "`image`"),
        ({"image": {**IMAGE, "height": 10**9}}, "`image.height`"),
        ({"image": {**IMAGE, "channels": 2}}, "`image.channels`"),
        ({"image": {**IMAGE, "squash": "no"}}, "`image.squash`"),
        ({"embedding": {"dim": 0, "unit_length": True}}, "`embedding.dim`"),
        ({"embedding": None}, "`embedding`"),
        ({"format": [1]}, "`format`"),
    ],
)
def test_a_damaged_manifest_is_refused(change, message, tmp_path):
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(WHOLE))
    assert read_manifest(tmp_path) == WHOLE
    path.write_text(json.dumps({**WHOLE, **change}))
    with pytest.raises(UsageError, match=message):
        read_manifest(tmp_path)


def test_a_crop_that_is_larger_than_its_image_is_refused(
    make_embedder, tmp_path
):
    embedder = make_embedder()
    for resize, expected in ((None, 16), (16, 16), (20, 20)):
        manifest = make_manifest(embedder, ExportOptions(resize=resize))
        assert manifest["image"]["resize"] == expected
    with pytest.raises(UsageError, match="`resize` must be at least .*=8,"):
        export_litert(embedder, tmp_path / "litert", resize=8)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("last", "unit"),
    [
        (EmbeddingHead(4, normalization="l2"), True),
        (keras.layers.UnitNormalization(), True),
        (EmbeddingHead(4), False),
        (EmbeddingHead(4, normalization="batch_norm"), False),
        (keras.layers.Dense(4, name="dense"), False),
    ],
)
def test_rows_of_length_1_are_known_whatever_the_layer_is_called(last, unit):
    """Of a model of the user's own, an index compared distances."""
    image = keras.Input((6,))
    assert has_unit_rows(keras.Model(image, last(image))) is unit
