"""Files of rows, folders of them, and all of them as one file."""

import json

import numpy as np
import pytest

from keras_dml.embeddings import (
    EmbeddingSet,
    iterate_embeddings,
    load_embeddings,
)
from keras_dml.embeddings.files import (
    check_format,
    count_rows,
    read_file,
    save_embeddings,
)
from keras_dml.embeddings.merging import merge_shards, merged_manifest
from keras_dml.embeddings.shard_folder import ShardFolder, check_same
from keras_dml.errors import RunError, UsageError

DIM = 3


@pytest.fixture(params=["npz", "parquet"])
def kind(request):
    if request.param == "parquet":
        pytest.importorskip("pyarrow")
    return request.param


def make_rows(ids, labels=True, weights="f00"):
    rng = np.random.default_rng(len(ids))
    names = [f"class {one[0]}" for one in ids]
    return EmbeddingSet(
        rng.normal(size=(len(ids), DIM)).astype("float32"),
        np.asarray(names, str) if labels else None,
        np.asarray(ids, str),
        weights_hash=weights,
    )


def make_folder(path, kind, parts, bad=(), labels=True):
    """Shards of the given ids, finished."""
    folder = ShardFolder(path)
    folder.create(
        {
            "format": kind,
            "shard_size": 4,
            "num_images": sum(map(len, parts)) + len(bad),
            "labels": labels,
            "dim": DIM,
            "weights_hash": "f00",
            "digests": [str(number) for number in range(len(parts))],
        }
    )
    for number, ids in enumerate(parts):
        found = [one for one in bad if one[0] == str(number)] if bad else []
        folder.write(number, make_rows(ids, labels), found)
    return folder


def assert_equal(left, right):
    for field in ("embeddings", "ids", "labels"):
        expected = getattr(right, field)
        if expected is None:
            assert getattr(left, field) is None
        else:
            np.testing.assert_array_equal(getattr(left, field), expected)
    assert left.weights_hash == right.weights_hash


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("ids", [["a", "bé/1.jpg", "c"], []])
def test_rows_come_back(tmp_path, kind, ids, labels):
    path = tmp_path / f"rows.{kind}"
    rows = make_rows(ids, labels)
    save_embeddings(path, rows)
    read = read_file(path)
    assert_equal(read, rows)
    assert read.embeddings.dtype == np.float32
    assert count_rows(path) == len(ids)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    if ids:
        assert_equal(load_embeddings(path, need_labels=False), rows)


def test_a_damaged_file_has_no_rows(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    assert count_rows(path) is None
    save_embeddings(path, make_rows(["a", "b"]))
    whole = path.read_bytes()
    for damage in (whole[:-20], whole[: len(whole) // 2], b"", b"hello"):
        path.write_bytes(damage)
        assert count_rows(path) is None
        with pytest.raises(UsageError, match="rows"):
            read_file(path)
    with pytest.raises(UsageError, match="There is no file"):
        load_embeddings(tmp_path / f"absent.{kind}")


def test_parquet_is_what_other_tools_read(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    rows = make_rows(["a", "b"])
    save_embeddings(path, rows)
    table = parquet.read_table(path)
    assert table.column_names == ["id", "label", "embedding"]
    assert table["id"].to_pylist() == ["a", "b"]
    np.testing.assert_array_equal(
        np.float32(table["embedding"].to_pylist()), rows.embeddings
    )
    parquet.write_table(table.select(["id"]), path)
    with pytest.raises(UsageError, match="the columns `id` and `embedding`"):
        load_embeddings(path)


def test_parquet_keeps_roles_and_classes_as_words(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "pets.parquet"
    role = ["query", "gallery", "gallery"]
    pets = EmbeddingSet(np.eye(3), [0, 1, 0], None, role, ["cat", "dog"])
    save_embeddings(path, pets)
    loaded = load_embeddings(path)
    assert loaded.labels.tolist() == ["cat", "dog", "cat"]
    assert loaded.ids.tolist() == ["0", "1", "2"]
    assert loaded.role.tolist() == role
    several = EmbeddingSet(np.eye(3), np.eye(3, dtype=int))
    with pytest.raises(UsageError, match="one label for each image"):
        save_embeddings(path, several)


def test_no_rows_are_no_embeddings(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    save_embeddings(path, make_rows([]))
    with pytest.raises(UsageError, match="at least one embedding"):
        load_embeddings(path)


def test_formats(monkeypatch):
    check_format("npz")
    with pytest.raises(UsageError, match="'npz', 'parquet'.*'csv'"):
        check_format("csv")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(UsageError, match=r"pip install 'keras-dml\[parquet\]'"):
        check_format("parquet")


@pytest.mark.parametrize("labels", [True, False])
def test_a_folder_and_its_merged_file_hold_all_rows(tmp_path, kind, labels):
    parts = [["a", "b"], [], ["c long name"], ["d"]]
    folder = make_folder(tmp_path / "shards", kind, parts, labels=labels)
    notes = folder.finish()
    assert notes["shard_rows"] == [2, 0, 1, 1]
    loaded = load_embeddings(folder.path, need_labels=False)
    assert loaded.ids.tolist() == ["a", "b", "c long name", "d"]
    if not labels:
        with pytest.raises(UsageError, match="shards must hold 'labels'"):
            load_embeddings(folder.path)
    pieces = [make_rows(ids, labels) for ids in parts]
    np.testing.assert_array_equal(
        loaded.embeddings, np.concatenate([one.embeddings for one in pieces])
    )
    assert (loaded.labels is not None) == labels
    assert loaded.weights_hash == "f00"
    one_by_one = list(iterate_embeddings(folder.path))
    assert [len(one) for one in one_by_one] == [2, 1, 1]
    merged = tmp_path / f"all.{kind}"
    merge_shards(folder, merged)
    assert_equal(load_embeddings(merged, need_labels=False), loaded)
    assert merged_manifest(merged) == notes
    # The kind of a file does not depend on the case of its name.
    loud = tmp_path / f"ALL.{kind.upper()}"
    merge_shards(folder, loud)
    assert_equal(load_embeddings(loud, need_labels=False), loaded)
    assert merged_manifest(loud) == notes


PETS = [{"dog", "cat"}, {"dog"}, set(), {"owl"}]


def test_several_labels_of_an_image_come_back(tmp_path, kind):
    path = tmp_path / f"rows.{kind}"
    save_embeddings(path, EmbeddingSet(np.eye(4), PETS))
    loaded = load_embeddings(path)
    assert loaded.labels.tolist() == PETS
    assert loaded.names.tolist() == ["cat|dog", "dog", "", "owl"]
    single = EmbeddingSet(np.eye(2), ["cat|dog", "dog"])
    save_embeddings(path, single)
    assert load_embeddings(path).labels.tolist() == ["cat|dog", "dog"]


def test_several_labels_in_shards_and_their_merged_file(tmp_path, kind):
    folder = make_folder(tmp_path / "shards", kind, [[], ["a", "b"], ["c"]])
    for number, (ids, sets) in enumerate(
        [([], []), (["a", "b"], PETS[:2]), (["c"], PETS[3:])]
    ):
        rows, labels = make_rows(ids).embeddings, np.array(sets, object)
        rows = EmbeddingSet(
            rows, labels, np.array(ids, str), weights_hash="f00"
        )
        folder.write(number, rows, [])
    folder.finish()
    loaded = load_embeddings(folder.path)
    assert loaded.labels.tolist() == [{"dog", "cat"}, {"dog"}, {"owl"}]
    merged = tmp_path / f"all.{kind}"
    merge_shards(folder, merged)
    assert_equal(load_embeddings(merged), loaded)


def test_a_file_of_others_has_no_manifest(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, embeddings=np.ones((2, 2)))
    assert merged_manifest(path) is None
    path.write_text("hello")
    assert merged_manifest(path) is None


def test_missing_and_damaged_shards_are_made_again(tmp_path, kind):
    folder = make_folder(tmp_path / "x", kind, [["a"], ["b"], ["c"]])
    assert folder.missing() == []
    folder.shard(0).unlink()
    content = folder.shard(2).read_bytes()
    folder.shard(2).write_bytes(content[:-7])
    assert folder.missing() == [0, 2]
    with pytest.raises(RunError, match="account for 3 images"):
        folder.finish()


def test_two_processes_do_not_write_at_once(tmp_path):
    """Another opening of the folder stands for another process."""
    pytest.importorskip("fcntl")
    make_folder(tmp_path, "npz", [["a"]])
    with ShardFolder(tmp_path) as first, ShardFolder(tmp_path) as second:
        first.lock()
        with pytest.raises(UsageError, match="Another process is writing"):
            second.lock()
        first.close()
        second.lock()


def test_an_unfinished_folder_is_not_loaded(tmp_path):
    folder = make_folder(tmp_path / "x", "npz", [["a"], ["b"]])
    folder.shard(1).unlink()
    with pytest.raises(UsageError, match="1 of 2 shards are missing.*`resume`"):
        load_embeddings(folder.path)


def test_bad_images_count_and_are_listed_once(tmp_path):
    bad = [("1", "in/\r1.jpg", 'a, "b"\nc')]
    folder = make_folder(tmp_path / "x", "npz", [["a"], ["b"]], bad)
    folder.write(1, make_rows(["b"]), bad)
    assert folder.read_bad() == bad
    assert folder.finish()["bad"] == 1
    folder.write_bad([])
    assert not (folder.path / "bad.csv").exists()
    with pytest.raises(RunError, match="2 embedded and 0 bad"):
        folder.finish()


def test_shards_of_other_weights_are_refused(tmp_path, kind):
    folder = make_folder(tmp_path / "x", kind, [["a"], ["b"]])
    folder.finish()
    save_embeddings(folder.shard(1), make_rows(["b"], weights="other"))
    with pytest.raises(UsageError, match="shard-00001.*f00.*other"):
        load_embeddings(folder.path)


@pytest.mark.parametrize("content", ["{", "[]", '{"made_by": "me"}'])
def test_a_foreign_folder_is_not_ours(tmp_path, content):
    (tmp_path / "manifest.json").write_text(content)
    assert not ShardFolder(tmp_path).exists
    with pytest.raises(UsageError, match="holds no embeddings"):
        load_embeddings(tmp_path)


def test_what_changed_is_named(tmp_path):
    folder = make_folder(tmp_path, "npz", [["a"], ["b"], ["c"]])
    stored = json.loads(json.dumps(folder.manifest()))
    wanted = {key: stored[key] for key in stored if key != "made_by"}
    wanted.pop("finished")
    check_same(stored, wanted, tmp_path)
    with pytest.raises(UsageError, match="`weights_hash` was 'f00'.*'b42'"):
        check_same(stored, {**wanted, "weights_hash": "b42"}, tmp_path)
    digests = ["0", "new", "2"]
    with pytest.raises(UsageError, match="from number 4 on"):
        check_same(stored, {**wanted, "digests": digests}, tmp_path)


def test_parquet_without_a_label_in_a_row_is_refused(tmp_path):
    """It was a class of the name None."""
    pyarrow = pytest.importorskip("pyarrow")
    values = pyarrow.array([1.0, 0.0, 0.0, 1.0], pyarrow.float32())
    columns = {
        "id": ["a", "b"],
        "label": ["x", None],
        "embedding": pyarrow.FixedSizeListArray.from_arrays(values, 2),
    }
    path = tmp_path / "rows.parquet"
    __import__("pyarrow.parquet")
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(UsageError, match="a row without a text"):
        read_file(path)
