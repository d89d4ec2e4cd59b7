"""`final="all"`: one more training, on every class, with honest numbers."""

import pytest

from keras_dml.config import load_run_config, resolve
from keras_dml.models import load_embedder
from keras_dml.run.final import final_config
from tests.images import image_folder
from tests.run.made_up import fit_and_final, write_weights

pytestmark = pytest.mark.slow  # trainings


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    return write_weights(folder / "small_cnn.weights.h5")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return image_folder(tmp_path_factory.mktemp("data") / "photos")


@pytest.fixture(scope="module")
def run(photos, weights, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "photos"
    return fit_and_final(photos, weights, output, epochs=2)


def test_every_class_trains(run):
    final = run.final
    assert final.config.data.all_classes
    before = run.metrics
    classes = before["train_classes"] + before["test_classes"]
    assert final.metrics["train_classes"] == classes
    assert final.metrics["final"]


def test_every_image_is_seen_as_often(run):
    (stage,) = run.config.stages
    (final,) = run.final.config.stages
    assert stage.phases[0].epochs == 2
    # Twice the classes train, and those that validated.
    assert final.phases[0].epochs >= 4


def test_the_numbers_are_those_of_the_measured_run(run):
    measured = ("after", "pretrained", "off_the_shelf", "gains", "seen")
    for name in (*measured, "worse_classes"):
        assert run.final.metrics[name] == run.metrics[name]
    assert run.final.conclusion() == run.conclusion()


def test_what_validation_chose_is_repeated(run):
    final, chosen = run.final.config, run.metrics["interpolation"]
    assert final.evaluation.interpolate == [chosen["share"]]
    if not chosen["kept"]:
        assert final.model.whitening == [run.metrics["shrinkage"]]


def test_the_two_embedders_differ(run):
    first, final = (
        load_embedder(one.folder.embedder).get_layer("head").get_weights()[0]
        for one in (run, run.final)
    )
    assert first.shape == final.shape
    assert abs(first - final).max() > 1e-4


@pytest.mark.parametrize("kept", [False, True])
def test_training_that_is_not_kept_is_one_step(run, kept):
    config = load_run_config(run.folder.record)
    metrics = dict(run.metrics)
    metrics["interpolation"] = {"share": 0.0, "kept": kept, "values": {}}
    final = final_config(config, metrics)
    assert final.model.whitening == ([] if kept else [metrics["shrinkage"]])
    assert final.evaluation.interpolate == [0.0]
    assert [one.epochs for one in final.stages[0].phases] == [1]
    assert final.sampling.steps_per_epoch == 1


def test_resuming_finds_both_finished(run, photos, weights):
    again = fit_and_final(
        photos, weights, run.folder.path, resume=True, epochs=2
    )
    assert again.final.metrics == run.final.metrics


def test_no_phase_follows_classes_that_now_train():
    config = resolve(
        "norm_softmax",
        "digits",
        flags={"model": {"backbone": "small_cnn"}},
        overrides=[
            "stages.main.train.epochs=2",
            "stages.main.train.stop_patience=2",
            "stages.main.train.plateau={patience: 2}",
        ],
    )
    final = final_config(config, {"interpolation": {}, "shrinkage": None})
    (phase,) = final.stages[0].phases
    assert phase.epochs >= 2
    assert (phase.plateau, phase.stop_patience) == (None, None)
