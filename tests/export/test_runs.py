"""A run's embedder is exported only while it is the run's."""

import csv
import json
import shutil

import numpy as np
import pytest

from keras_dml.embeddings import (
    EmbeddingSet,
    load_embeddings,
    save_embeddings,
)
from keras_dml.errors import RunError, UsageError
from keras_dml.export import (
    export_run,
    exporter,
    open_artifact,
    read_manifest,
)
from keras_dml.models import load_embedder
from keras_dml.run import fit as train
from keras_dml.run.folder import RunFolder
from keras_dml.run.trained_run import TrainedRun
from tests.run.test_fit import settings

pytestmark = pytest.mark.slow  # trainings


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    train.fit(settings(), folder, export=exporter())
    return folder


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "run")


def test_int8_is_calibrated_on_the_runs_own_images(run, tmp_path):
    rows = export_run(
        run,
        ["litert"],
        quantize=["none", "int8"],
        references=True,
        max_drop=0.02,
        output=tmp_path / "out",
    )
    assert [row["artifact"] for row in rows] == [
        "embedder",
        "litert",
        "litert-int8",
    ]
    assert rows[2]["mean_cosine"] > 0.99
    folder = tmp_path / "out" / "litert-int8"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["quantize"] == "int8"
    assert manifest["labels"] == [str(digit) for digit in range(10)]
    notes = json.loads((folder / "references.json").read_text())
    # The test images of digits are queries and references at once.
    assert notes["rows"] == rows[0]["images"]
    assert set(notes["labels"]) == set(manifest["labels"])


def test_the_callers_options_precede_those_of_the_run(run, tmp_path):
    calibration = np.zeros((3, 8, 8, 1), "uint8")
    export_run(
        run,
        "litert",
        quantize="int8",
        calibration=calibration,
        resize=40,
        squash=True,
        metadata={"recipe": "mine", "owner": "me"},
        output=tmp_path,
    )
    manifest = read_manifest(tmp_path / "litert-int8")
    assert manifest["image"]["resize"] == 40
    assert manifest["image"]["squash"] is True
    assert (manifest["recipe"], manifest["owner"]) == ("mine", "me")
    assert manifest["labels"] == [str(digit) for digit in range(10)]


def test_the_index_holds_the_test_references(run, tmp_path):
    rows = export_run(
        run,
        ["saved_model", "litert"],
        with_index=True,
        max_drop=0.01,
        output=tmp_path,
    )
    assert [row["ann_recall@10"] for row in rows] == [None, 1.0, None]
    assert rows[1]["index_recall@1"] > 0.9
    folder = tmp_path / "saved_model"
    manifest = json.loads((folder / "manifest.json").read_text())
    index = manifest["index"]
    assert index["kind"] == "exact"
    assert index["weights_hash"] == TrainedRun(run).weights_hash
    assert index["references"] == rows[0]["images"]
    report = json.loads((folder / "parity.json").read_text())
    assert report[2]["artifact"] == "index"
    assert report[2]["recall@1"] == report[2]["recall@1_exact"]
    with open(folder / index["labels"], newline="") as file:
        labels = {row["id"]: row["label"] for row in csv.DictReader(file)}
    test = load_embeddings(run / "embeddings" / "test.npz")
    assert labels == dict(zip(test.ids, test.names, strict=True))
    served = open_artifact(folder)
    found, scores = served.search(test.embeddings[:20], 1)
    np.testing.assert_allclose(scores, 1, atol=1e-5)
    assert found[:, 0].tolist() == test.ids[:20].tolist()


@pytest.mark.parametrize("stored", ["other", None])
def test_embeddings_of_other_weights_are_refused(stored, run, tmp_path):
    path = tmp_path / "catalogue.npz"
    rows = np.ones((3, 16), "float32")
    save_embeddings(path, EmbeddingSet(rows, [0, 1, 2], weights_hash=stored))
    message = f"hash .* Received: {stored or 'no hash'}"
    with pytest.raises(UsageError, match=message):
        export_run(
            run,
            ["saved_model"],
            with_index=True,
            gallery=path,
            output=tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


def test_embeddings_of_these_weights_are_the_index(run, tmp_path):
    path = tmp_path / "catalogue.npz"
    rows = np.random.default_rng(0).normal(size=(30, 16)).astype("float32")
    ids = np.arange(100, 130)
    stored = TrainedRun(run).weights_hash
    save_embeddings(
        path, EmbeddingSet(rows, ids // 2, ids, weights_hash=stored)
    )
    export_run(
        run,
        ["saved_model"],
        with_index=True,
        index="scann",
        gallery=path,
        max_k=5,
        output=tmp_path / "out",
    )
    served = open_artifact(tmp_path / "out" / "saved_model")
    found, _ = served.search(rows[:4], 5)
    assert found[:, 0].tolist() == ids[:4].tolist()


def test_a_gallery_without_an_index_is_refused(run, tmp_path):
    with pytest.raises(UsageError, match="Pass `with_index=True`"):
        export_run(run, ["saved_model"], gallery="shoes", output=tmp_path)


def test_a_run_without_its_weights(copy):
    (copy / "embedder.keras").unlink()
    shutil.rmtree(copy / "export")
    with pytest.raises(RunError, match=r"embedder\.keras does not load"):
        export_run(copy, ["litert"])
    assert not (copy / "export").exists()


def test_an_embedder_of_another_shape(copy):
    config = (copy / "config.yaml").read_text()
    (copy / "config.yaml").write_text(config.replace("dim: 16", "dim: 32"))
    with pytest.raises(RunError, match="in 16 dimensions.* says .* and 32"):
        export_run(copy, ["litert"])


def test_an_embedder_with_other_weights_than_were_measured(copy):
    embedder = load_embedder(copy / "embedder.keras")
    embedder.trainable_weights[0].assign_add(
        np.ones(embedder.trainable_weights[0].shape)
    )
    embedder.save(copy / "embedder.keras")
    with pytest.raises(RunError, match="other weights than those"):
        export_run(copy, ["litert"])


def test_an_open_run_whose_images_were_moved(copy, monkeypatch, tmp_path):
    from keras_dml.export import runs

    def stop(config):
        raise UsageError(f"read from {config.data.data_dir}")

    monkeypatch.setattr(runs, "load_run_data", stop)
    opened, moved = TrainedRun(copy), tmp_path / "moved"
    with pytest.raises(UsageError, match=f"read from {moved}"):
        export_run(opened, "litert", data_dir=moved)
    assert opened.config.data.data_dir is None


def test_a_run_that_changes_meanwhile(copy, monkeypatch):
    from keras_dml.export import runs

    before = (copy / "export" / "litert" / "manifest.json").stat().st_mtime_ns
    load = runs.load_run_data

    def load_and_disturb(config):
        metrics = RunFolder(copy).metrics
        metrics.write_text(metrics.read_text() + " ")
        return load(config)

    monkeypatch.setattr(runs, "load_run_data", load_and_disturb)
    with pytest.raises(RunError, match=r"metrics\.json changed in .*again"):
        export_run(copy, ["litert"])
    after = (copy / "export" / "litert" / "manifest.json").stat().st_mtime_ns
    assert after == before
