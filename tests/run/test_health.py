"""A training measures the health of its embeddings, and tells a collapse."""

import csv
import dataclasses
import logging

import numpy as np
import pytest

from keras_dml.run.folder import RunFolder
from keras_dml.run.phases import StageTrainer
from keras_dml.run.recorder import RunState
from tests.run import made_up

HEALTH = [
    *("effective_dim", "participation_ratio", "mean_norm", "duplicates"),
    *("positive_similarity", "negative_similarity", "similarity_gap"),
    "proxy_occupancy",
]


def trained(folder, validation):
    """The epochs of a training that validates with these images."""
    config = made_up.settings(
        "evaluation.interpolate=[]",
        "stages=[{phases: [{epochs: 4}]}]",
        "sampling.steps_per_epoch=1",
        "sampling.batch_size=16",
        "evaluation.every=1",
    )
    data = dataclasses.replace(made_up.stage(), validation=validation)
    run = RunFolder(folder)
    run.create(config)
    StageTrainer(
        config, config.stages[0], data, made_up.models(), run, RunState()
    ).run()
    with open(run.history, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def warnings(caplog):
    def told():
        return [
            record.getMessage()
            for record in caplog.records
            # TensorFlow counts what other tests have traced in the process.
            if (record.name, record.levelno) == ("keras_dml", logging.WARNING)
        ]

    return told


def test_every_epoch_has_its_health(tmp_path, warnings):
    rows = trained(tmp_path / "run", made_up.manifest(seed=2))
    assert len(rows) == 4
    for row in rows:
        for name in HEALTH:
            assert np.isfinite(float(row[f"val_{name}"])), name
        assert 1 < float(row["val_effective_dim"]) <= 16
        assert 0 < float(row["val_proxy_occupancy"]) <= 1
    assert not warnings()


def test_a_collapse_is_told_once(tmp_path, warnings):
    """Equal images have equal embeddings, in all four validations."""
    images = made_up.manifest(seed=2)
    equal = np.full_like(images.images, 128)
    rows = trained(tmp_path / "run", dataclasses.replace(images, images=equal))
    assert {float(row["val_effective_dim"]) for row in rows} == {0.0}
    (warning,) = warnings()
    assert warning.startswith(
        "The embeddings have collapsed by epoch 2. All embeddings are one "
        "point."
    )
