"""`final="all"`: one more training, on every class, with honest numbers."""

import math

import numpy as np
import pytest

from keras_dml.config import load_run_config, resolve
from keras_dml.models import load_embedder
from keras_dml.run.data import load_run_data, stage_data
from keras_dml.run.evaluate import evaluate_run
from keras_dml.run.final import final_config
from keras_dml.run.history import History, read_history
from keras_dml.run.trained_run import TrainedRun
from tests.images import image_folder
from tests.run.made_up import fit_and_final, write_weights


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights")
    return write_weights(folder / "small_cnn.weights.h5")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    # Of three images of a class none validates: the training is kept.
    return image_folder(tmp_path_factory.mktemp("data") / "photos", images=3)


@pytest.fixture(scope="module")
def run(photos, weights, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "photos"
    return fit_and_final(photos, weights, output, epochs=2)


@pytest.mark.slow
def test_every_class_trains(run):
    final = run.final
    assert final.config.data.all_classes
    before = run.metrics
    classes = before["train_classes"] + before["test_classes"]
    assert final.metrics["train_classes"] == classes
    assert final.metrics["final"]


@pytest.mark.slow
def test_every_image_is_seen_as_often(run):
    (stage,) = run.config.stages
    (final,) = run.final.config.stages
    assert stage.phases[0].epochs == 2
    # Twice the classes train, and those that validated.
    data = load_run_data(run.config)
    images = len(stage_data(data, stage, run.config).fit)
    whole = len(data.train) + len(data.test)
    assert final.phases[0].epochs == math.ceil(2 * whole / images) >= 4


@pytest.mark.slow
def test_the_numbers_are_those_of_the_measured_run(run):
    measured = ("after", "pretrained", "off_the_shelf", "gains", "seen")
    for name in (*measured, "worse_classes"):
        assert run.final.metrics[name] == run.metrics[name]
    assert run.final.conclusion() == run.conclusion()


@pytest.mark.slow
def test_what_is_measured_on_classes_that_trained_is_said(run, caplog):
    evaluate_run(run.folder.path)
    assert not caplog.messages
    evaluate_run(run.final.folder.path)
    (message,) = caplog.messages
    assert "has trained on every class" in message
    assert str(run.folder.path) in message


@pytest.mark.slow
def test_what_validation_chose_is_repeated(run):
    final, chosen = run.final.config, run.metrics["interpolation"]
    assert final.evaluation.interpolate == [chosen["share"]]
    whitening = [] if chosen["kept"] else [run.metrics["shrinkage"]]
    assert final.model.whitening == whitening


@pytest.mark.slow
def test_the_two_embedders_differ(run):
    first, final = (
        load_embedder(one.folder.embedder).get_layer("head").get_weights()[0]
        for one in (run, run.final)
    )
    assert first.shape == final.shape
    assert abs(first - final).max() > 1e-4
    for one in (run, run.final):
        opened = TrainedRun(one.folder.path)
        assert opened.weights_hash == one.metrics["weights_hash"]
    assert run.weights_hash != run.final.weights_hash


@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True])
def test_training_that_is_not_kept_is_one_step(run, kept):
    config = load_run_config(run.folder.record)
    metrics = dict(run.metrics)
    metrics["interpolation"] = {"share": 0.0, "kept": kept, "values": {}}
    history = read_history(run.folder.history)
    final = final_config(config, metrics, history)
    assert final.model.whitening == ([] if kept else [metrics["shrinkage"]])
    assert final.evaluation.interpolate == [0.0]
    assert [one.epochs for one in final.stages[0].phases] == [1]
    assert final.sampling.steps_per_epoch == 1


@pytest.mark.slow
def test_resuming_finds_both_finished(run, photos, weights):
    again = fit_and_final(
        photos, weights, run.folder.path, resume=True, epochs=2
    )
    assert again.final.metrics == run.final.metrics


def finals(config, history=None, metrics=None):
    """The phases of the final training, per stage: name and epochs."""
    history = (
        history
        if history is not None
        else History(
            [
                f"{stage.name}/{phase.name}"
                for stage in config.stages
                for phase in stage.phases
                for _ in range(phase.epochs)
            ]
        )
    )
    metrics = {"interpolation": {}, "shrinkage": None, **(metrics or {})}
    return final_config(config, metrics, history).stages


def digits(*overrides):
    return resolve(
        "norm_softmax",
        "digits",
        flags={"model": {"backbone": "small_cnn"}},
        overrides=[
            "stages.main.train.epochs=20",
            "sampling.steps_per_epoch=null",
            *overrides,
        ],
    )


def test_what_happens_after_some_epochs_happens_after_the_same_share():
    config = digits(
        "sampling.steps_per_epoch=3",
        "evaluation.select=last",
        "model.scale=16",
        "stages.main.train.heat={epoch: 10, scale: 4}",
        "optimizer.backbone={schedule: step, step_epochs: 12, warmup_steps: 0}",
    )
    metrics = {"interpolation": {}, "shrinkage": None}
    final = final_config(config, metrics, History(["main/train"] * 20))
    (phase,) = final.stages[0].phases
    more = phase.epochs / 20
    assert more > 1.5
    assert phase.heat.epoch == pytest.approx(10 * more, abs=1)
    steps = final.optimizer.backbone.step_epochs
    assert steps == pytest.approx(12 * more, abs=1)


def test_no_phase_follows_classes_that_now_train():
    config = digits(
        "stages.main.train.stop_patience=2",
        "stages.main.train.plateau={patience: 2}",
    )
    (phase,) = finals(config)[0].phases
    assert phase.epochs >= 20
    assert (phase.plateau, phase.stop_patience) == (None, None)


def test_a_training_that_stopped_early_is_as_short():
    config = digits("stages.main.train.stop_patience=2")
    (phase,) = finals(config, History(["main/train"] * 7))[0].phases
    assert phase.epochs == 7


def test_without_a_history_the_training_is_as_long_as_planned():
    (phase,) = finals(digits(), History())[0].phases
    assert phase.epochs == 20


def test_a_training_ends_where_the_best_weights_were():
    """As long as the weights that were kept had trained, as a refit."""
    values = np.array([np.nan, 0.3, np.nan, 0.9, np.nan, 0.9, np.nan, 0.1])
    history = History(["main/train"] * 8, {"val_map@r": values})
    best = digits("evaluation.select=best", "evaluation.monitor=map@r")
    assert finals(best, history)[0].phases[0].epochs == 4
    last = digits("evaluation.select=last", "evaluation.monitor=map@r")
    assert finals(last, history)[0].phases[0].epochs == 8


@pytest.mark.parametrize("steps", ["null", "3"])
@pytest.mark.parametrize("turns", ["false", "true"])
def test_turned_images_are_seen_as_often(steps, turns):
    config = digits(
        f"sampling.steps_per_epoch={steps}",
        f"data.quarter_turns={turns}",
        "evaluation.select=last",
    )
    data = load_run_data(config)
    (phase,) = finals(config)[0].phases
    if steps == "null":
        assert phase.epochs == 20
        return
    fit = stage_data(data, config.stages[0], config).fit
    images = len(fit) / (4 if turns == "true" else 1)
    whole = len(data.train) + len(data.test)
    assert phase.epochs == math.ceil(20 * whole / images)


@pytest.mark.parametrize("epochs", [1, 2, 7])
def test_a_final_training_is_as_long_as_its_images_ask(epochs):
    """One epoch became three where two and a tenth were asked for."""
    config = digits(
        "sampling.steps_per_epoch=90",
        f"stages.main.train.epochs={epochs}",
        "evaluation.select=last",
    )
    data = load_run_data(config)
    fit = stage_data(data, config.stages[0], config).fit
    more = (len(data.train) + len(data.test)) / len(fit)
    metrics = {"interpolation": {}, "shrinkage": None}
    history = History(["main/train"] * epochs)
    final = final_config(config, metrics, history)
    (phase,) = final.stages[0].phases
    steps = phase.epochs * final.sampling.steps_per_epoch
    assert steps == pytest.approx(90 * epochs * more, abs=phase.epochs / 2)


def test_classes_that_find_the_schedule_go_on_to_do_so():
    """The second stage repeats the drops of the first, also in the end."""
    config = resolve(
        "proxynca_pp",
        "digits",
        flags={"model": {"backbone": "small_cnn"}},
        overrides=[
            "stages=[{name: search, classes: first_half, phases: "
            "[{name: train, epochs: 4, plateau: {patience: 5}}]}, "
            "{name: final, classes: all, replay: search, phases: "
            "[{name: train, epochs: 4}]}]",
        ],
    )
    search, final = finals(config)
    assert search.phases[0].plateau.patience == 5
    assert final.replay == "search"
