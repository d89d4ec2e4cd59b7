"""Which distance is a match, of runs that held no classes out."""

import errno
import os

import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import RunError, UsageError
from keras_dml.run.thresholds import (
    CARRIED,
    threshold_of,
    thresholds_of,
    usual_threshold,
    usual_thresholds,
)
from keras_dml.run.trained_run import EmbeddedImages, TrainedRun
from tests.images import image_folder
from tests.run.made_up import fit_and_final, write_weights


@pytest.fixture(name="run", scope="module")
def of_few_classes(tmp_path_factory):
    """Five classes train, so that a fifth of their images validates."""
    folder = tmp_path_factory.mktemp("few")
    photos = image_folder(folder / "photos", classes=10, images=20, size=28)
    weights = write_weights(folder / "small_cnn.weights.h5")
    return fit_and_final(photos, weights, folder / "run", epochs=1)


class MadeUpRun(TrainedRun):
    """A run of random embeddings, which needs neither data nor network."""

    weights_hash = "made up"

    def part(self, part, source=None, data_dir=None):
        rows = np.random.default_rng(0).normal(size=(200, 8))
        labels = np.arange(200) % 4
        return EmbeddedImages(EmbeddingSet(rows.astype("f"), labels), None)


def made_up(path, **metrics):
    path.mkdir(exist_ok=True)
    config = resolve("triplet", "digits")
    return MadeUpRun.just_trained(path, config, metrics)


def test_a_read_only_run_is_calibrated_each_time(tmp_path, monkeypatch, caplog):
    """Its embeddings went without a cache, but its threshold was an error."""
    run = made_up(tmp_path)

    def refused(path, content):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("keras_dml.run.thresholds.write_json", refused)
    first, second = threshold_of(run, 0.1), threshold_of(run, 0.1)
    assert first == second
    assert "calibrated again each time" in caplog.text


TRAINED = "These are classes that trained"
EARLIER = "The network that was calibrated trained without these"


@pytest.mark.parametrize(
    ("held_out", "cautions"),
    [
        ("classes", [f"{EARLIER} classes"]),
        ("images", [TRAINED, f"{EARLIER} images"]),
    ],
)
@pytest.mark.parametrize("refit", [True, False])
def test_a_network_that_trained_on_them_since_is_named(
    tmp_path, held_out, cautions, refit
):
    """Images of trained classes were called classes that had not trained."""
    run = made_up(tmp_path, validated_on=held_out, refit=refit)
    found = threshold_of(run, 0.1)
    assert (EARLIER in found.meaning) is refit
    carried = usual_thresholds(run)
    final = made_up(tmp_path / "final", final=True, thresholds=carried)
    for one in [found, threshold_of(final, 0.1)][not refit :]:
        assert all(caution in one.meaning for caution in cautions)
        assert (TRAINED in one.meaning) is (held_out == "images")


@pytest.mark.slow
def test_a_final_training_of_several_workers_has_those_of_the_run_above(run):
    """It had none: workers cannot calibrate without each other."""
    final = TrainedRun(run.final.folder.path)
    carried, _ = usual_threshold(final)
    del final.metrics[CARRIED]
    assert usual_threshold(final)[0] == carried
    assert (
        threshold_of(final, 0.3).threshold == threshold_of(run, 0.3).threshold
    )
    final.folder.path = run.folder.path / "elsewhere" / "final"
    with pytest.raises(UsageError, match="not at all"):
        threshold_of(final, 0.1)


@pytest.mark.slow
def test_images_of_few_classes_calibrate_and_say_so(run):
    """A run of fewer than six training classes had no threshold."""
    assert run.metrics["validated_on"] == "images"
    found, reason = usual_threshold(run)
    assert found.num_classes == 5
    assert found.measured_on == found.facts()["measured_on"] == "images"
    assert "These are classes that trained" in found.meaning
    assert "needs at least" in reason


@pytest.mark.slow
def test_several_rates_share_the_validation_images(run, monkeypatch):
    asked, part = [], TrainedRun.part

    def counted(self, name):
        asked.append(name)
        return part(self, name)

    monkeypatch.setattr(TrainedRun, "part", counted)
    found = thresholds_of(run, (0.35, 0.25, 1e-9))
    assert [one.threshold.target_fmr for one in found] == [0.35, 0.25]
    assert asked == ["validation"]


@pytest.mark.slow
def test_a_final_training_has_the_thresholds_of_the_measured_one(run):
    """It had none."""
    measured, _ = usual_threshold(run)
    found, _ = usual_threshold(run.final)
    assert found.threshold == measured.threshold
    assert found.measured_on == "images of the measured run"
    assert "trained without these images" in found.meaning
    with pytest.raises(UsageError, match="Received: pairs 0.123"):
        threshold_of(run.final, 0.123)


@pytest.mark.slow
def test_damaged_thresholds_of_a_final_training_are_named(run):
    final = run.final
    for damaged in ({"threshold": 1}, {"measured_on": "hearsay"}):
        for key, values in final.metrics["thresholds"].items():
            final.metrics["thresholds"][key] = {**values, **damaged}
        with pytest.raises(RunError, match="`thresholds` in .*metrics.json"):
            usual_threshold(final)
