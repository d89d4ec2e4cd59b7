import io
import os
import zipfile

import numpy as np
import pytest

from keras_dml import machine
from keras_dml.embeddings import (
    EmbeddingSet,
    load_embeddings,
    save_embeddings,
)
from keras_dml.errors import UsageError
from keras_dml.evaluation import evaluate
from keras_dml.evaluation.index.registry import build_index

ROWS = np.arange(8, dtype="float32").reshape(4, 2)


def test_what_is_saved_comes_back(tmp_path):
    path = tmp_path / "deep" / "pets.npz"
    saved = EmbeddingSet(
        ROWS,
        [0, 0, 1, 1],
        list("abcd"),
        ["query", "query", "gallery", "gallery"],
        ["cat", "dog"],
        "f00",
    )
    save_embeddings(path, saved, more=np.zeros(3))
    loaded = load_embeddings(path)
    for field in ("embeddings", "labels", "ids", "role", "class_names"):
        np.testing.assert_array_equal(
            getattr(loaded, field), getattr(saved, field)
        )
    assert loaded.weights_hash == "f00"
    assert [file.name for file in path.parent.iterdir()] == ["pets.npz"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
def test_any_numbers_become_float32(tmp_path, dtype):
    path = tmp_path / "pets.npz"
    np.savez_compressed(path, embeddings=ROWS.astype(dtype), labels=[0] * 4)
    loaded = load_embeddings(path)
    assert loaded.embeddings.dtype == "float32"
    np.testing.assert_array_equal(loaded.embeddings, ROWS)


def test_a_whole_gallery_needs_no_role(tmp_path):
    path = tmp_path / "pets.npz"
    save_embeddings(path, EmbeddingSet(ROWS, list("aabb")))
    with np.load(path) as file:
        assert set(file.files) == {"embeddings", "labels", "ids"}


def write(path, **arrays):
    np.savez(path, **arrays)


def whole(path):
    write(path, embeddings=ROWS, labels=[0, 0, 1, 1])
    return path.read_bytes()


def with_pickle(path):
    write(path, embeddings=ROWS, labels=np.array([0, "a", None, 1], object))


def truncated(path):
    path.write_bytes(whole(path)[:-40])


def flipped(path):
    content = bytearray(whole(path))
    content[200] ^= 255
    path.write_bytes(content)


def single_array(path):
    buffer = io.BytesIO()
    np.save(buffer, ROWS)
    path.write_bytes(buffer.getvalue())


def other_zip(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("embeddings.npy", "no array")
        file.writestr("labels.npy", "no array")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (with_pickle, "a pickle, which is never loaded"),
        (truncated, "not a readable `.npz` file"),
        (flipped, "not a readable `.npz` file"),
        (single_array, "it holds a single array"),
        (other_zip, "not a readable `.npz` file"),
        (lambda path: path.write_bytes(b""), "not a readable `.npz` file"),
        (lambda path: path.write_text("hello"), "not a readable `.npz` file"),
        (
            lambda path: write(path, x=ROWS, y=ROWS),
            "'embeddings'. Received: 'x', 'y'",
        ),
        (lambda path: write(path, labels=[0, 1]), "'embeddings' as well"),
        (lambda path: write(path, embeddings=ROWS), "must hold 'labels'"),
        (lambda path: write(path), "no array"),
        (
            lambda path: write(path, embeddings=ROWS, labels=[1, 2, 3]),
            "pets.npz: `labels` must have one row for each of the 4",
        ),
        (
            lambda path: write(path, embeddings=ROWS[0], labels=[1, 2]),
            "`embeddings` must have the shape",
        ),
    ],
)
def test_damaged_files_are_refused_by_name(tmp_path, damage, message):
    path = tmp_path / "pets.npz"
    damage(path)
    with pytest.raises(UsageError, match=message) as refusal:
        load_embeddings(path)
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_of_more_than_the_memory_is_not_read(tmp_path, monkeypatch):
    """Zeros shrink a thousandfold: six megabytes can hold six gigabytes."""
    path = tmp_path / "pets.npz"
    np.savez_compressed(path, embeddings=np.zeros((10_000, 8)))
    assert path.stat().st_size < 10_000
    memory = {"SC_PHYS_PAGES": 100, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", memory.__getitem__)
    with pytest.raises(UsageError, match=r"take 640,\d+ bytes, and this"):
        load_embeddings(path)


def test_a_container_has_the_memory_that_it_may_use(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    limit.write_text("409600\n")
    monkeypatch.setattr(machine, "CONTAINER", limit)
    path = tmp_path / "pets.npz"
    np.savez_compressed(path, embeddings=np.zeros((10_000, 8)))
    with pytest.raises(UsageError, match="this machine has 409,600"):
        load_embeddings(path)


def test_an_array_that_lost_its_name_is_missed(tmp_path):
    """The directory at the end named another array than its own header."""
    path = tmp_path / "pets.npz"
    save_embeddings(
        path, EmbeddingSet(ROWS, [0, 0, 1, 1], class_names=["a", "b"])
    )
    start, _, end = path.read_bytes().rpartition(b"class_names.npy")
    path.write_bytes(start + b"glass_names.npy" + end)
    with pytest.raises(UsageError, match="not a readable"):
        load_embeddings(path)


def test_labels_may_be_missing_where_that_is_said(tmp_path):
    path = tmp_path / "pets.npz"
    save_embeddings(path, EmbeddingSet(ROWS, ids=list("abcd")))
    with pytest.raises(UsageError, match="must hold 'labels'"):
        load_embeddings(path)
    loaded = load_embeddings(path, need_labels=False)
    assert loaded.labels is None
    assert loaded.names.tolist() == [""] * 4
    assert loaded.select([0, 2]).ids.tolist() == ["a", "c"]
    with pytest.raises(UsageError, match="must have `labels`"):
        evaluate(loaded)
    found, _ = build_index("exact", loaded).search(ROWS[:1], k=1)
    assert found[0, 0] in "abcd"


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(UsageError, match="There is no file"):
        load_embeddings(tmp_path / "absent.npz")
    with pytest.raises(UsageError, match="holds no embeddings"):
        load_embeddings(tmp_path)


@pytest.mark.parametrize("ending", ["", ".npz"])
def test_a_name_longer_than_a_file_can_have(ending):
    with pytest.raises(UsageError, match="There is no file 'xxx"):
        load_embeddings("x" * 300 + ending)


def test_a_pickle_is_never_run(tmp_path):
    """An object array whose loading would make a file."""

    class Bomb:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    path = tmp_path / "pets.npz"
    np.savez(path, embeddings=ROWS, labels=np.array([Bomb()] * 4, object))
    with pytest.raises(UsageError, match="never loaded"):
        load_embeddings(path)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "labels",
    [[{1, 2}, {2}], [{"cat|dog"}, {"dog"}], [{"cat"}, "dog"], [{""}, {"a"}]],
)
def test_sets_of_labels_that_no_text_can_hold(tmp_path, labels):
    pets = EmbeddingSet(np.eye(2), labels)
    with pytest.raises(UsageError, match="`labels` of a file.*0-1 matrix"):
        save_embeddings(tmp_path / "pets.npz", pets)
    assert not list(tmp_path.iterdir())
