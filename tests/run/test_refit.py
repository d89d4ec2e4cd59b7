"""`refit`: what validated trains too, once it has chosen what to keep."""

import csv

import numpy as np
import pytest

from keras_dml.config import Explanation
from keras_dml.config.sections import REFIT
from keras_dml.embeddings import load_embeddings
from keras_dml.models import keep_features, load_embedder
from keras_dml.run import fit as training
from keras_dml.run import phases, start
from keras_dml.run.compiling import fine_tuning_rate
from keras_dml.run.conclusion import conclusion
from keras_dml.run.data import load_run_data, stage_data
from keras_dml.run.final import fit_final
from keras_dml.run.forecast import forecast
from keras_dml.run.history import read_history
from keras_dml.run.interpolation import Choice, interpolate
from keras_dml.run.measure import embed
from keras_dml.run.phases import StageTrainer
from keras_dml.run.prefixes import with_dim
from keras_dml.run.recorder import RunState
from keras_dml.run.thresholds import usual_threshold
from keras_dml.run.trained_run import TrainedRun
from tests.images import image_folder
from tests.run.made_up import quick_settings, write_weights

pytestmark = pytest.mark.slow  # trainings

CHOSEN = {
    "share": 0.5,
    "kept": False,
    "values": {"0": 0.1, "0.5": 0.3, "1": 0.2},
    "pretrained": 0.1,
    "lower": [],
}


@pytest.fixture(scope="module", name="settings")
def settings_of_photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refit")
    weights = write_weights(folder / "small_cnn.weights.h5")
    photos = image_folder(folder / "photos", classes=40, images=8)
    return quick_settings(photos, weights, epochs=2, matryoshka=[4])


def chosen_half(embedder, start, data, config, known):
    """Validation always finds half of the way best."""
    if data.validation is None:
        return interpolate(embedder, start, data, config, known)
    rows = embed(embedder, data.validation, config)
    return Choice(embedder, dict(CHOSEN), rows)


@pytest.fixture(scope="module", name="run")
def refitted_run(settings, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phases, "interpolate", chosen_half)
        training.fit(settings, output)
    return TrainedRun(output)


def test_it_is_as_long_and_on_all_training_classes(run):
    rows = run.folder.history.read_text().splitlines()[1:]
    assert [row.split(",")[0] for row in rows] == ["main"] * 2 + [REFIT] * 2
    config = run.config
    data = load_run_data(config)
    last = stage_data(data, config.trainings[-1], config)
    assert (last.fit.num_classes, last.validation) == (20, None)
    assert run.metrics["refit"]
    assert run.metrics["length"]["steps"] == 6


def test_what_validation_chose_stays_on_record(run):
    assert run.metrics["interpolation"] == CHOSEN
    assert run.metrics["validated_on"] == "classes"
    assert run.metrics["validation"]
    said = " ".join(conclusion(run.metrics))
    assert "repeated with these images" in said


def test_a_final_training_repeats_its_results(run):
    final = fit_final(run.folder, run.metrics, run.config)
    metrics = TrainedRun(final).metrics
    assert metrics["refit"]
    assert conclusion(metrics) == conclusion(run.metrics)


def test_a_finished_final_training_reads_no_image(run, monkeypatch):
    monkeypatch.setattr("keras_dml.run.final.read_images", None)
    final = fit_final(run.folder, run.metrics, run.config)
    assert final == run.folder.path / "final"


def test_thresholds_are_of_the_network_that_saw_none_of_them(run):
    config = run.config
    validation = stage_data(
        load_run_data(config), config.stages[0], config
    ).validation
    unseen = load_embeddings(run.folder.unseen)
    assert unseen.ids.tolist() == validation.ids.tolist()
    now = run.embed_images(validation)
    assert np.abs(now - unseen.embeddings).max() > 1e-3
    found, _ = usual_threshold(run)
    assert found.measured_on == "measured run"
    assert found.num_images == len(validation)


def test_no_image_is_looked_at_twice_before_training(
    settings, tmp_path, monkeypatch
):
    """Not in the refit either, which starts from the same features."""
    looked_at = []

    def counted(network, images, config):
        looked_at.extend(images.ids)
        return embed(network, images, config)

    monkeypatch.setattr(phases, "interpolate", chosen_half)
    monkeypatch.setattr(start, "embed", counted)
    whitened = settings.changed(model={"whitening": [1.0, 0.5]})
    training.fit(whitened, tmp_path / "run")
    run = TrainedRun(tmp_path / "run")
    assert run.metrics["refit"]
    assert sorted(looked_at) == sorted(load_run_data(run.config).train.ids)


def test_a_prefix_is_calibrated_on_itself(run):
    whole = run.part("validation").embeddings.embeddings
    cut = with_dim(run, 4).part("validation").embeddings.embeddings
    assert (whole.shape[1], cut.shape[1]) == (8, 4)
    short = usual_threshold(with_dim(run, 4))[0]
    assert short.threshold.score != usual_threshold(run)[0].threshold.score


def weights_of(folder):
    embedder = load_embedder(folder / "embedder.keras")
    return [np.array(value) for value in embedder.variables]


@pytest.mark.parametrize("stage", [0, 1])
def test_an_interrupted_run_ends_as_if_it_had_not_been(
    run, settings, tmp_path, monkeypatch, stage
):
    finish = StageTrainer._finish_phase

    def interrupted(self):
        if self.state.stage == stage:
            raise KeyboardInterrupt
        finish(self)

    monkeypatch.setattr(phases, "interpolate", chosen_half)
    with monkeypatch.context() as patch:
        patch.setattr(StageTrainer, "_finish_phase", interrupted)
        with pytest.raises(KeyboardInterrupt):
            training.fit(settings, tmp_path / "run")
    training.fit(settings, tmp_path / "run", resume=True)
    for one, other in zip(
        weights_of(tmp_path / "run"), weights_of(run.folder.path), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "found", [{"share": 0.0}, {"share": 0.0, "kept": True}]
)
def test_nothing_is_repeated_if_nothing_of_it_was_kept(
    settings, tmp_path, monkeypatch, found
):
    monkeypatch.setattr(
        phases,
        "interpolate",
        lambda embedder, *_: Choice(embedder, CHOSEN | found),
    )
    metrics = training.fit(settings, tmp_path / "run")
    assert not metrics["refit"]
    assert metrics["length"]["steps"] == 6


def test_kept_features_have_no_prefixes(settings, tmp_path, monkeypatch):
    """Also where the embedding has as many numbers."""

    def keep(embedder, *_):
        return Choice(keep_features(embedder), CHOSEN | {"kept": True})

    monkeypatch.setattr(phases, "interpolate", keep)
    wide = settings.changed(model={"dim": 128})
    metrics = training.fit(wide, tmp_path / "run")
    assert (metrics["dim"], metrics["prefixes"]) == (128, {})


def test_where_no_epoch_is_chosen_the_last_validation_is_reported(
    settings, tmp_path, monkeypatch
):
    """It was the highest, of a network that nobody gets."""
    monkeypatch.setattr(
        RunState, "improves", lambda state, value: state.best is None
    )
    last = settings.changed(evaluation={"select": "last", "every": 1})
    run = tmp_path / "run"
    metrics = training.fit(last.changed(refit=False), run)
    values = read_history(run / "history.csv").values("val_recall@1")
    assert metrics["validation"]["recall@1"] == values[max(values)]


@pytest.mark.parametrize(
    "changes",
    [
        {"refit": False},
        {"data": {"validation": "none"}},
        {"data": {"validation": "test"}},
        {"evaluation": {"interpolate": []}},
    ],
)
def test_without_held_out_images_there_is_none(settings, changes):
    assert len(settings.trainings) == 2
    changed = settings.changed(**changes)
    assert changed.trainings == changed.stages


def test_it_ends_at_the_best_epoch_where_that_is_kept(
    settings, tmp_path, monkeypatch
):
    """The weights of the best epoch are kept, not those of the last one."""
    monkeypatch.setattr(
        RunState, "improves", lambda state, value: state.best is None
    )
    monkeypatch.setattr(phases, "interpolate", chosen_half)
    best = settings.changed(evaluation={"select": "best", "every": 1})
    metrics = training.fit(best, tmp_path / "run")
    with open(tmp_path / "run" / "history.csv", newline="") as file:
        first, last, again = csv.DictReader(file)
    stages = [row["stage"] for row in (first, last, again)]
    assert stages == ["main", "main", REFIT]
    for rate in ("learning_rate_backbone", "learning_rate_head"):
        assert again[rate] == first[rate]
    assert metrics["refit"]
    assert metrics["selected_by"] == "validation map@r"


def test_the_forecast_tells_of_it(settings):
    stages = forecast(Explanation(settings, {})).stages
    first, again = stages
    assert (first.stage, again.stage) == ("main", REFIT)
    assert again.train_images == first.train_images + first.validation_images
    assert again.train_classes == (
        first.train_classes + first.validation_classes
    )
    assert again.validation_images == 0
    assert (again.epochs, first.epochs) == (2, 2)
    for stage in stages:
        steps = stage.epochs * stage.steps_per_epoch
        assert stage.rates == (fine_tuning_rate(steps),)
    once = settings.changed(refit=False)
    assert forecast(Explanation(once, {})).stages == (first,)
