"""Batches by a file of triplets, and by how alike classes are."""

import re
import shlex

import numpy as np
import pytest

from keras_dml.config import StageConfig
from keras_dml.errors import UsageError
from keras_dml.models import pooled_features
from keras_dml.run import start
from keras_dml.run.batches import batch_rows, make_sampler
from keras_dml.run.folder import RunFolder
from keras_dml.run.measure import embed
from keras_dml.run.phases import StageTrainer
from keras_dml.run.recorder import RunState
from keras_dml.run.start import class_similarity
from tests.commands import run_command
from tests.conftest import ROOT
from tests.images import image_folder
from tests.run import made_up


def settings(*overrides):
    return made_up.settings("sampling.steps_per_epoch=6", *overrides)


def test_batches_of_triplets_of_a_file(tmp_path):
    file = tmp_path / "triplets.csv"
    lines = [f"1-{row},1-{row + 1},1-{row + 20}" for row in range(0, 60, 3)]
    file.write_text("\n".join(["anchor,positive,negative", *lines, "1-0,x,y"]))
    config = settings(
        "sampling.kind=triplets",
        f"sampling.triplets={file}",
        "sampling.batch_size=13",
    )
    images = made_up.manifest()
    batches = make_sampler(images, config)(0)
    assert [len(rows) for rows in batches] == [12] * 6
    assert batch_rows(images, config) == 12
    for rows in batches:
        anchors, positives, negatives = rows.reshape(-1, 3).T
        np.testing.assert_array_equal(positives, anchors + 1)
        np.testing.assert_array_equal(negatives, anchors + 20)


@pytest.mark.parametrize(
    "overrides",
    [["sampling.kind=triplets"], ["sampling.triplets=some.csv"]],
)
def test_triplets_and_their_file_go_together(overrides):
    with pytest.raises(UsageError, match="needs `sampling.triplets`"):
        settings(*overrides)


@pytest.mark.slow
def test_the_command_of_the_page_trains_on_given_triplets(
    tmp_path, capsys, monkeypatch
):
    """docs/training.md, "Given triplets"; its loss tried a single row."""
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    page = text.partition("## Given triplets")[2]
    words = shlex.split(re.search(r"    keras-dml (.*)", page)[1])
    photos = image_folder(tmp_path / "photos", classes=12, images=4)
    rows = [
        f"class_{one:02}/0.jpg,class_{one:02}/{other}.jpg,class_{negative:02}/1.jpg"
        for one in range(6)
        for other in (1, 2, 3)
        for negative in range(6)
        if negative != one
    ]
    file = tmp_path / "triplets.csv"
    file.write_text("\n".join(["anchor,positive,negative", *rows]))
    places = {"photos/": photos, "triplets.csv": file}
    for name, place in places.items():
        words = [word.replace(name, str(place)) for word in words]
    outcome = run_command(
        capsys,
        monkeypatch,
        *words,
        *("--output", tmp_path / "run", "--backbone", "small_cnn"),
        *("--epochs", "1", "--dim", "8", "--no-export", "--no-report"),
        *("--set", "sampling.steps_per_epoch=2"),
    )
    assert outcome.code == 0, outcome.err


HARD = (
    "sampling.kind=hard_classes",
    "sampling.classes=3",
    "sampling.images=2",
)


def test_alike_are_classes_of_near_mean_features():
    config, data = settings(*HARD), made_up.stage()
    models = made_up.models()
    found = class_similarity(models, data, config)
    features = embed(pooled_features(models.embedder), data.fit, config)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    means = [features[data.fit.labels == one].mean(axis=0) for one in range(12)]
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(found, means @ np.transpose(means), atol=1e-5)
    assert class_similarity(models, data, settings()) is None


def test_no_class_is_without_a_mean_where_there_are_many(monkeypatch):
    """Those beyond as many images as are looked at were alike to none."""
    monkeypatch.setattr(start, "MOST_IMAGES", 6)
    data = made_up.stage()
    found = class_similarity(made_up.models(), data, settings(*HARD))
    np.testing.assert_allclose(np.diag(found), np.ones(12), atol=1e-5)


def test_a_stage_draws_classes_that_are_alike(tmp_path):
    config, data = settings(*HARD), made_up.stage()
    models = made_up.models()
    similarity = class_similarity(models, data, config)
    stage = StageConfig(phases=[{}])
    trainer = StageTrainer(
        config, stage, data, models, RunFolder(tmp_path), RunState()
    )
    for rows in trainer.sampler(0):
        first, *others = data.fit.labels[rows[::2]].tolist()
        order = np.argsort(-similarity[first]).tolist()
        order.remove(first)
        assert others == order[:2]
    # What the checks before a training draw has the same shapes.
    shapes = np.shape(make_sampler(data.fit, config)(0))
    assert np.shape(trainer.sampler(0)) == shapes == (6, 6)
