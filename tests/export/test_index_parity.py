"""What an index loses is measured, and too much is rejected."""

import json

import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import RunError, UsageError
from keras_dml.export import (
    FORMATS,
    References,
    export_embedder,
    export_saved_model,
    index_parity,
)
from tests.conformance import to_numpy
from tests.export.test_export_embedder import IMAGES, LABELS


def make_references(embedder, ids=None, **arguments):
    rows = to_numpy(embedder(IMAGES))
    return References(EmbeddingSet(rows, LABELS, ids), **arguments)


@pytest.mark.parametrize("max_k", [1, 3, 100])
def test_an_exact_index_loses_nothing(max_k, make_embedder, tmp_path):
    embedder = make_embedder()
    references = make_references(embedder, max_k=max_k)
    folder = export_saved_model(embedder, tmp_path / "m", references=references)
    result = index_parity(folder, references, seconds=0.01)
    k = {1: 1, 3: 2, 100: 10}[max_k]
    assert result["k"] == k
    assert result["queries"] == len(IMAGES)
    assert result["ann_recall@1"] == result[f"ann_recall@{k}"] == 1
    assert result["recall@1"] == result["recall@1_exact"] > 0.9
    assert result["batch_1_ms"] > 0


def test_without_labels_there_is_no_retrieval(make_embedder, tmp_path):
    embedder = make_embedder()
    references = References(EmbeddingSet(to_numpy(embedder(IMAGES))))
    folder = export_saved_model(embedder, tmp_path / "m", references=references)
    result = index_parity(folder, references, seconds=0.01)
    assert result["recall@1"] is result["recall@1_exact"] is None


def test_a_model_without_an_index(make_embedder, tmp_path):
    embedder = make_embedder()
    folder = export_saved_model(embedder, tmp_path / "m")
    with pytest.raises(RunError, match="Export it with `--with-index`"):
        index_parity(folder, make_references(embedder))


def test_an_index_that_finds_others_is_rejected(
    make_embedder, tmp_path, monkeypatch
):
    embedder = make_embedder()
    # Every class's name goes to images of the next one.
    ids = np.roll(np.arange(12), 3)

    def export(embedder, path, references, **arguments):
        wrong = make_references(embedder, ids)
        return export_saved_model(embedder, path, references=wrong, **arguments)

    arguments = {
        "images": IMAGES,
        "labels": LABELS,
        "references": make_references(embedder),
        "max_drop": 0.01,
    }
    rows = export_embedder(embedder, ["saved_model"], tmp_path, **arguments)
    assert rows[0]["ann_recall@10"] is None
    assert rows[1]["ann_recall@10"] == 1
    monkeypatch.setitem(FORMATS, "saved_model", export)
    with pytest.raises(RunError, match=r"recall@1 0\.\d+ by its index"):
        export_embedder(embedder, ["saved_model"], tmp_path, **arguments)
    left = sorted(entry.name for entry in tmp_path.iterdir())
    assert left == ["saved_model", "saved_model.rejected"]
    report = json.loads(
        (tmp_path / "saved_model.rejected" / "parity.json").read_text()
    )
    assert report[2]["recall@1"] < report[2]["recall@1_exact"]


def test_references_need_the_format_that_takes_them(make_embedder, tmp_path):
    embedder = make_embedder()
    with pytest.raises(UsageError, match="Add the format `saved_model`"):
        export_embedder(
            embedder,
            ["litert"],
            tmp_path,
            IMAGES,
            references=make_references(embedder),
        )
    assert not list(tmp_path.iterdir())
