"""Parquet files of other programs, and those of Beam."""

import numpy as np
import pytest

from keras_dml.embeddings import (
    EmbeddingSet,
    load_embeddings,
    save_embeddings,
)
from keras_dml.errors import UsageError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def write(path, rows, kind="list_"):
    """Writes lists of any length, as `beam_job` does."""
    lists = getattr(pyarrow, kind)(pyarrow.float32())
    schema = pyarrow.schema([("id", pyarrow.string()), ("embedding", lists)])
    ids = [str(number) for number in range(len(rows))]
    table = pyarrow.table({"id": ids, "embedding": rows}, schema=schema)
    parquet.write_table(table, path, row_group_size=2)


@pytest.mark.parametrize("kind", ["list_", "large_list"])
def test_lists_of_any_length_are_read_if_all_are_equally_long(tmp_path, kind):
    path = tmp_path / "vectors.parquet"
    rows = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.25]]
    write(path, rows, kind)
    loaded = load_embeddings(path, need_labels=False)
    np.testing.assert_array_equal(loaded.embeddings, np.float32(rows))
    assert loaded.ids.tolist() == ["0", "1", "2"]


@pytest.mark.parametrize(
    "rows, message",
    [
        ([[1.0, 0.0], [1.0]], "rows of 1 and of 2 numbers"),
        ([[1.0, 0.0], None, [1.0, 0.0]], "a row without an embedding"),
        ([[], []], "at least one row and one column"),
        ([], "at least one"),
    ],
)
def test_other_lists_are_refused(tmp_path, rows, message):
    path = tmp_path / "vectors.parquet"
    write(path, rows)
    with pytest.raises(UsageError, match=message):
        load_embeddings(path, need_labels=False)


def test_a_column_of_no_lists_is_refused(tmp_path):
    path = tmp_path / "vectors.parquet"
    table = pyarrow.table({"id": ["a"], "embedding": [1.0]})
    parquet.write_table(table, path)
    with pytest.raises(UsageError, match="`embedding`.*it holds double"):
        load_embeddings(path, need_labels=False)


def test_lists_that_take_more_than_the_memory_are_not_read(
    tmp_path, monkeypatch
):
    path = tmp_path / "vectors.parquet"
    write(path, np.zeros((100, 50)).tolist())
    monkeypatch.setattr("keras_dml.npz.machine_memory", lambda: 10_000)
    with pytest.raises(UsageError, match="20,000 bytes"):
        load_embeddings(path, need_labels=False)


@pytest.mark.parametrize("name", ["rows.npz", "rows.parquet"])
def test_saving_makes_the_folder(tmp_path, name):
    path = tmp_path / "new" / "folder" / name
    save_embeddings(path, EmbeddingSet(np.eye(2), ["a", "b"]))
    assert len(load_embeddings(path)) == 2
