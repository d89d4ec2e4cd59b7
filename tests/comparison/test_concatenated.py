import dataclasses
import os

import numpy as np
import pytest

from keras_dml.comparison import concatenated as module
from keras_dml.comparison.concatenated import concatenated
from keras_dml.comparison.jobs import make_jobs
from keras_dml.comparison.records import RunRecord, collect
from keras_dml.config import resolve
from keras_dml.config.plans import parse_plan
from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError
from keras_dml.evaluation import evaluate_retrieval
from keras_dml.npz import read_npz, write_npz
from keras_dml.run import fit as train
from keras_dml.run.data import load_run_data
from keras_dml.run.folder import RunFolder
from keras_dml.run.measure import evaluate
from keras_dml.run.trained_run import TrainedRun
from tests.images import image_folder

pytestmark = pytest.mark.slow  # trainings


@pytest.fixture(scope="module")
def folds(tmp_path_factory):
    """Two folds of one arm, trained for a few steps."""
    folder = tmp_path_factory.mktemp("plan")
    images = image_folder(
        folder / "paint", classes=12, images=6, size=16, suffix=".png"
    )
    plan = parse_plan(
        {
            "title": "T",
            "sources": [str(images)],
            "recipes": ["ln"],
            "backbones": ["small_cnn"],
            "dims": [8],
            "protocol": {
                "kind": "cross_validation",
                "folds": 2,
                "concatenated": True,
            },
            "budget": {"epochs": 1, "steps_per_epoch": 3},
            "set": {"sampling.batch_size": 12},
        }
    )
    jobs = make_jobs(plan)
    for job in jobs:
        train.fit(job.config, folder / "runs" / job.run)
    return folder, collect([job.record for job in jobs], folder)


def test_unit_embeddings_side_by_side(folds):
    folder, records = folds
    (whole,) = concatenated(records, folder / "runs")
    assert (whole.dim, whole.fold, whole.status) == (16, None, "done")
    assert whole.concatenated == 2
    parts = [TrainedRun(record.folder).part("test") for record in records]
    rows = [part.embeddings.embeddings for part in parts]
    expected = evaluate_retrieval(
        np.concatenate(
            [row / np.linalg.norm(row, axis=1, keepdims=True) for row in rows],
            axis=1,
        ),
        parts[0].embeddings.labels,
        query_ids=parts[0].embeddings.ids,
    )
    for name, value in whole.after.items():
        assert value == pytest.approx(expected.metrics[name], abs=1e-6)
    with np.load(whole.folder / "per_query.npz") as file:
        assert len(file["ids"]) == len(rows[0])


@pytest.fixture
def untrained(tmp_path, monkeypatch):
    """Two folds; some test images have labels that train, and old roles."""
    sets = ["ab"[i % 2] + "tuvw"[i // 4] for i in range(16)] + [*"abcd"] * 4
    images = Manifest(
        "photos",
        np.array([[name in one for name in "abcdtuvw"] for one in sets]),
        "abcdtuvw",
        [f"{i}.png" for i in range(32)],
        images=np.zeros((32, 8, 8, 3), np.uint8),
        role=["query", "gallery"] * 8 + [""] * 16,
    )
    monkeypatch.setattr("keras_dml.data.readers.read", lambda *_: images)
    overrides = {"model.dim": 4, "data.train_classes": [*"abcd"]}
    config = resolve("triplet", "photos", overrides=overrides)

    class Untrained(TrainedRun):
        weights_hash = "of no weights"

        def __init__(self, path):
            self.folder, self.metrics = RunFolder(path), {}
            self.config = config

        def embed_images(self, images):
            rng = np.random.default_rng(int(self.folder.path.name[-1]))
            return rng.standard_normal((len(images), 4)).astype("float32")

    monkeypatch.setattr(module, "TrainedRun", Untrained)
    kind = ("photos", "small_cnn", "none", 4, "triplet", "triplet")
    folders = [tmp_path / "triplet-fold0", tmp_path / "triplet-fold1"]
    return [
        RunRecord(one.name, *kind, fold=fold, status="done", folder=one)
        for fold, one in enumerate(folders)
    ]


def test_labels_and_roles_are_those_that_the_folds_measure(untrained, tmp_path):
    (whole,) = concatenated(untrained, tmp_path)
    folds = [module.TrainedRun(one.folder) for one in untrained]
    test = load_run_data(folds[0].config).test
    assert test.class_names == (*"tuvw",) and not test.role.any()
    rows = [fold.embed_images(test) for fold in folds]
    unit = [row / np.linalg.norm(row, axis=1, keepdims=True) for row in rows]
    expected = evaluate(np.concatenate(unit, axis=1), test, folds[0].config)
    assert whole.after == pytest.approx(expected.metrics, abs=1e-6)
    with np.load(whole.folder / "per_query.npz") as file:
        np.testing.assert_array_equal(file["ids"], test.ids)
        np.testing.assert_array_equal(file["labels"], test.labels)


def test_images_that_are_gone_are_measured_as_they_were_embedded(
    untrained, tmp_path, monkeypatch
):
    (before,) = concatenated(untrained, tmp_path / "before")
    monkeypatch.setattr("keras_dml.data.readers.read", refuse)
    (after,) = concatenated(untrained, tmp_path / "after")
    assert after.after == before.after


def test_folds_that_embedded_other_images_are_refused(
    untrained, tmp_path, monkeypatch
):
    concatenated(untrained, tmp_path / "before")
    file = untrained[1].folder / "embeddings" / "test.npz"
    monkeypatch.setattr("keras_dml.data.readers.read", refuse)
    arrays = read_npz(file, ("embeddings", "ids", "labels", "class_names"))
    arrays |= read_npz(file, ("hash", "images_hash"))
    write_npz(file, **{**arrays, "ids": arrays["ids"][::-1]})
    message = (
        "The folds of triplet-concatenated must have embedded the same test "
        "images. Received: triplet-fold1 with others than triplet-fold0. "
    )
    with pytest.raises(UsageError, match=message):
        concatenated(untrained, tmp_path / "after")


def refuse(*arguments):
    raise UsageError("The images are gone.")


def test_it_is_measured_once(folds, monkeypatch):
    folder, records = folds
    first = concatenated(records, folder / "runs")

    def refuse(*arguments):
        raise AssertionError("measured again")

    monkeypatch.setattr("keras_dml.comparison.concatenated.TrainedRun", refuse)
    assert concatenated(records, folder / "runs") == first


@pytest.mark.parametrize("content", ["[]", '{"map@r": "high"}', "{"])
def test_a_damaged_result_is_refused_by_name(tmp_path, content):
    kind = ("paint", "small_cnn", "none", 8, "ln", "ln")
    records = [
        RunRecord(f"ln-fold{i}", *kind, fold=i, status="done") for i in (0, 1)
    ]
    result = tmp_path / "ln-concatenated" / "metrics.json"
    result.parent.mkdir()
    result.write_text(content)
    with pytest.raises(UsageError, match=r"concatenated/metrics\.json must"):
        concatenated(records, tmp_path)


def test_without_all_folds_there_is_nothing(folds):
    folder, records = folds
    left = dataclasses.replace(records[1], status="to do")
    assert concatenated([records[0], left], folder / "runs") == []


def test_data_of_equal_names_have_results_of_their_own(folds, monkeypatch):
    """The names of their runs differ in a hash after the fold."""
    folder, records = folds
    measured = []
    monkeypatch.setattr(
        "keras_dml.comparison.concatenated._measure",
        lambda folds, target, result: (
            measured.append([fold.run for fold in folds]),
            result.write_text("{}"),
        ),
    )
    others = [
        dataclasses.replace(one, run=f"{one.run}_93809{one.fold}", source="b")
        for one in records
    ]
    found = concatenated([*records, *others], folder / "two")
    assert len({one.run for one in found}) == len(measured) == 2
    assert found[1].run == f"{records[0].run[:-6]}_938090-concatenated"


def test_folds_that_trained_again_are_measured_again(folds):
    folder, records = folds
    (before,) = concatenated(records, folder / "runs")
    result = before.folder / "metrics.json"
    result.write_text('{"recall@1": 0.5}')
    (again,) = concatenated(records, folder / "runs")
    assert again.after == {"recall@1": 0.5}
    later = result.stat().st_mtime + 10
    os.utime(records[1].folder / "metrics.json", (later, later))
    (again,) = concatenated(records, folder / "runs")
    assert again == before
    os.utime(records[1].folder / "metrics.json", (0, 0))
