"""One small trained run for all tests of the commands."""

import shutil

import pytest

from keras_dml.config import resolve
from keras_dml.run import fit as train
from tests.commands import run_command
from tests.images import image_folder


@pytest.fixture
def command(capsys, monkeypatch):
    def call(*arguments):
        return run_command(capsys, monkeypatch, *arguments)

    return call


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """44 classes of 12 images; 22 classes train, 7 of them validate."""
    return image_folder(
        tmp_path_factory.mktemp("images") / "paint",
        classes=44,
        images=12,
        size=16,
        suffix=".png",
    )


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory, images):
    """A run of a few seconds; only for tests that leave it as it is."""
    folder = tmp_path_factory.mktemp("runs") / "paint"
    config = resolve(
        "norm_softmax",
        str(images),
        flags={"model": {"backbone": "small_cnn", "dim": 16}},
        overrides=[
            "data.validation_fraction=0.3",
            "stages.0.phases.0.epochs=2",
            "sampling.steps_per_epoch=4",
            "evaluation.k=[1,2,4]",
        ],
    )
    train.fit(config, folder)
    return folder


@pytest.fixture
def run(tmp_path, finished_run):
    """A copy of the run, for a test to write into."""
    folder = tmp_path / "run"
    shutil.copytree(finished_run, folder)
    return folder
