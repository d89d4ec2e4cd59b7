"""What an index loses is measured, and too much is rejected."""

import dataclasses
import json

import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import RunError, UsageError
from keras_dml.export import (
    export_embedder,
    export_saved_model,
    index_parity,
)
from keras_dml.export.saved_model import SavedModel
from tests.conformance import to_numpy
from tests.export.test_export_embedder import IMAGES, LABELS


def make_gallery(embedder, labels=LABELS, ids=None):
    return EmbeddingSet(to_numpy(embedder(IMAGES)), labels, ids)


@pytest.mark.slow
@pytest.mark.parametrize("max_k", [1, 3, 100])
def test_an_exact_index_loses_nothing(max_k, make_embedder, tmp_path):
    embedder = make_embedder()
    gallery = make_gallery(embedder)
    folder = export_saved_model(
        embedder,
        tmp_path / "m",
        with_index=True,
        gallery=gallery,
        max_k=max_k,
    )
    result = index_parity(folder, gallery, seconds=0.01)
    k = {1: 1, 3: 2, 100: 10}[max_k]
    assert result["k"] == k
    assert result["queries"] == len(IMAGES)
    assert result["ann_recall@1"] == result[f"ann_recall@{k}"] == 1
    assert result["recall@1"] == result["recall@1_exact"] > 0.9
    assert result["batch_1_ms"] > 0


@pytest.mark.parametrize(
    "labels", [None, [0] * len(IMAGES), range(len(IMAGES))]
)
def test_without_labels_to_find_there_is_no_retrieval(
    labels, make_embedder, tmp_path
):
    """A catalog has no classes, or a photo a product."""
    embedder = make_embedder()
    gallery = make_gallery(embedder, labels=labels)
    folder = export_saved_model(
        embedder, tmp_path / "m", with_index=True, gallery=gallery
    )
    result = index_parity(folder, gallery, seconds=0.01)
    assert result["recall@1"] is result["recall@1_exact"] is None


def test_an_image_of_several_labels_is_found_by_one(make_embedder, tmp_path):
    """Of each pair of neighbors, one has a label more."""
    embedder = make_embedder()
    sets = [
        {str(label), "odd"} if number % 2 else {str(label)}
        for number, label in enumerate(LABELS)
    ]
    gallery = make_gallery(embedder, labels=sets)
    folder = export_saved_model(
        embedder, tmp_path / "m", with_index=True, gallery=gallery
    )
    result = index_parity(folder, gallery, seconds=0.01)
    assert result["recall@1"] == result["recall@1_exact"] > 0.9


def test_a_model_without_an_index(make_embedder, tmp_path):
    embedder = make_embedder()
    folder = export_saved_model(embedder, tmp_path / "m")
    with pytest.raises(RunError, match="Export it with `with_index=True`"):
        index_parity(folder, make_gallery(embedder))


@pytest.mark.slow
def test_an_index_that_finds_others_is_rejected(
    make_embedder, tmp_path, monkeypatch
):
    embedder = make_embedder()
    # Every class's name goes to images of the next one.
    ids = np.roll(np.arange(12), 3)

    def write(self, embedder, folder, options):
        wrong = make_gallery(embedder, ids=ids)
        options = dataclasses.replace(options, gallery=wrong)
        return write_as_asked(self, embedder, folder, options)

    arguments = {
        "images": IMAGES,
        "labels": LABELS,
        "with_index": True,
        "gallery": make_gallery(embedder),
        "max_drop": 0.01,
    }
    rows = export_embedder(embedder, ["saved_model"], tmp_path, **arguments)
    assert rows[0]["ann_recall@10"] is None
    assert rows[1]["ann_recall@10"] == 1
    write_as_asked = SavedModel.write
    monkeypatch.setattr(SavedModel, "write", write)
    with pytest.raises(RunError, match=r"recall@1 of its index 0\.\d+ i"):
        export_embedder(embedder, ["saved_model"], tmp_path, **arguments)
    left = sorted(entry.name for entry in tmp_path.iterdir())
    assert left == ["saved_model", "saved_model.rejected"]
    report = json.loads(
        (tmp_path / "saved_model.rejected" / "parity.json").read_text()
    )
    assert report[2]["recall@1"] < report[2]["recall@1_exact"]


def test_an_index_needs_the_format_that_takes_it(make_embedder, tmp_path):
    embedder = make_embedder()
    with pytest.raises(UsageError, match="Add the format `saved_model`"):
        export_embedder(
            embedder,
            ["litert"],
            tmp_path,
            IMAGES,
            with_index=True,
            gallery=make_gallery(embedder),
        )
    assert not list(tmp_path.iterdir())
