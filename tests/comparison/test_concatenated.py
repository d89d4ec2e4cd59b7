import dataclasses
import os

import numpy as np
import pytest

from keras_dml.comparison.concatenated import concatenated
from keras_dml.comparison.jobs import make_jobs
from keras_dml.comparison.records import RunRecord, collect
from keras_dml.config.plans import parse_plan
from keras_dml.errors import UsageError
from keras_dml.evaluation import evaluate_retrieval
from keras_dml.run import fit as train
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
