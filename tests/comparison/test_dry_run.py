"""`compare --dry-run` looks things up: it trains, builds and writes nothing."""

import os
import subprocess
import sys

import pytest

from keras_dml.comparison.compare import compare
from keras_dml.comparison.jobs import count_trials
from keras_dml.config.plans import load_plan
from keras_dml.data import image_file
from keras_dml.models import embedder
from keras_dml.run import models, processes, settling
from tests.conftest import ROOT
from tests.images import image_folder

LARGEST = "reality_check"
# Of one core, from the start of Python to the answer.
MOST_SECONDS = 10


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """24 classes of 12 images; 12 train."""
    return image_folder(
        tmp_path_factory.mktemp("images") / "paint", classes=24, images=12
    )


def never(what):
    def call(*args, **kwargs):
        raise AssertionError(f"A dry run {what}.")

    return call


def test_it_builds_no_network_and_starts_no_process(
    images, tmp_path, monkeypatch
):
    opened = []

    def counted(*args, **kwargs):
        opened.append(args)
        return image_file.open_image(*args, **kwargs)

    monkeypatch.setattr(settling, "open_image", counted)
    monkeypatch.setattr(models, "build_embedder", never("builds a network"))
    monkeypatch.setattr(
        embedder, "build_with_weights", never("builds a network")
    )
    monkeypatch.setattr(subprocess, "Popen", never("starts a process"))
    monkeypatch.setattr(
        processes.TrainingProcess, "__init__", never("starts a training")
    )
    result = compare(
        str(images),
        tmp_path / "plan",
        recipes=["norm_softmax", "triplet"],
        backbones=["mobilenet_v2"],
        seeds=3,
        set=["data.validation_from=6"],
        dry_run=True,
    )
    assert len(result.runs) == 6
    assert result.estimate.seconds > 0
    assert not (tmp_path / "plan").exists()
    # The size of some images is looked up once for all runs.
    assert 0 < len(opened) <= 50


def cpu_seconds(*arguments, cwd, says=""):
    """CPU seconds of a process, which other processes do not stretch."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert says in done.stderr
    after = os.times()
    return (
        after.children_user
        + after.children_system
        - before.children_user
        - before.children_system
    )


@pytest.mark.slow
def test_it_answers_soon_after_tensorflow_is_there(images, tmp_path):
    """TensorFlow takes most of the time; the answer less than the rest."""
    imports = cpu_seconds("-c", "import keras", cwd=tmp_path)
    dry_run = cpu_seconds(
        *("-m", "keras_dml", "compare", images, "--dry-run"),
        *("--recipes", "norm_softmax,triplet", "--seeds", "0,1,2"),
        *("--set", "data.validation_from=6"),
        cwd=tmp_path,
    )
    assert dry_run - imports < 4
    assert dry_run < max(MOST_SECONDS, 2 * imports)


@pytest.mark.slow
def test_the_largest_plan_answers_as_soon(images, tmp_path):
    """Its 880 runs and 1,100 trials, on images that are here."""
    other = image_folder(tmp_path / "other", classes=24, images=12)
    assert count_trials(load_plan(LARGEST)) == 1100
    output = tmp_path / "plan"
    arguments = (
        *("-m", "keras_dml", "compare", LARGEST, "--dry-run"),
        *("--source", images, "--source", other, "--weights", "none"),
        *("--output", output),
    )
    # A slow processor, or a shared one, needs longer for TensorFlow as well.
    imports = cpu_seconds("-c", "import keras", cwd=tmp_path)
    took = cpu_seconds(*arguments, cwd=tmp_path, says="1,100 to do")
    assert took < max(MOST_SECONDS, 3.5 * imports)
    assert not output.exists()
