"""A run's embedder is exported only while it is the run's."""

import json
import shutil

import numpy as np
import pytest

from keras_dml import train
from keras_dml.errors import RunError
from keras_dml.models import load_embedder
from keras_dml.run.exporting import export_run
from keras_dml.run.folder import RunFolder
from keras_dml.run.hashing import weights_hash
from tests.test_train import settings


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    train.fit(settings(), folder)
    return folder


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "run")


def test_int8_is_calibrated_on_the_runs_own_images(run, tmp_path):
    rows = export_run(
        run,
        ["litert"],
        quantize=["none", "int8"],
        with_gallery=True,
        max_drop=0.02,
        output=tmp_path / "out",
    )
    assert [row["artefact"] for row in rows] == [
        "embedder",
        "litert",
        "litert-int8",
    ]
    assert rows[2]["mean_cosine"] > 0.99
    folder = tmp_path / "out" / "litert-int8"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["quantize"] == "int8"
    assert manifest["labels"] == [str(digit) for digit in range(10)]
    notes = json.loads((folder / "gallery.json").read_text())
    # The test images of digits are queries and references at once.
    assert notes["rows"] == rows[0]["images"]
    assert set(notes["labels"]) == set(manifest["labels"])


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
    metrics = json.loads((copy / "metrics.json").read_text())
    metrics["weights_hash"] = weights_hash(embedder)
    (copy / "metrics.json").write_text(json.dumps(metrics))
    embedder.trainable_weights[0].assign_add(
        np.ones(embedder.trainable_weights[0].shape)
    )
    embedder.save(copy / "embedder.keras")
    with pytest.raises(RunError, match="other weights than those"):
        export_run(copy, ["litert"])


def test_a_run_that_changes_meanwhile(copy, monkeypatch):
    from keras_dml.run import exporting

    before = (copy / "export" / "litert" / "manifest.json").stat().st_mtime_ns
    load = exporting.load_run_data

    def load_and_disturb(config):
        metrics = RunFolder(copy).metrics
        metrics.write_text(metrics.read_text() + " ")
        return load(config)

    monkeypatch.setattr(exporting, "load_run_data", load_and_disturb)
    with pytest.raises(RunError, match=r"metrics\.json changed in .*again"):
        export_run(copy, ["litert"])
    after = (copy / "export" / "litert" / "manifest.json").stat().st_mtime_ns
    assert after == before
