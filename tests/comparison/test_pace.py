import json

import pytest

from keras_dml.comparison.estimate import Estimate
from keras_dml.comparison.pace import (
    ELSEWHERE,
    MEASURED,
    MODELED,
    SCALED,
    START,
    Paces,
    RunPace,
    modeled,
)
from keras_dml.comparison.work import Work
from keras_dml.config import resolve
from keras_dml.run.folder import RunFolder

WORK = Work("mobilenet_v2", 96, 32, 100, validated=10, tested=5)


def finished_run(folder, seconds=50.0, **changes):
    """A finished run of 100 steps, as far as its pace is concerned."""
    config = resolve("ln", "digits").changed(
        model={"backbone": "mobilenet_v2"},
        data={"image_size": 96, "train_size": 96},
        sampling={"batch_size": 32},
    )
    run = RunFolder(folder)
    run.create(config)
    metrics = {"length": {"steps": 100}, "train_seconds": seconds}
    run.write_metrics(metrics | changes)


def test_seconds_of_a_pace():
    assert RunPace(10.0, 0.5).seconds(WORK) == 10 + 0.5 * 115


def test_the_pace_of_a_run_gives_its_seconds_back():
    pace = RunPace.of_run(WORK, seconds=100.0, training=55.0)
    assert pace == RunPace(100 - 55 - 2.5, 0.5)
    assert pace.seconds(WORK) == pytest.approx(100)


def test_larger_images_batches_and_networks_take_longer():
    step = modeled(WORK).step
    assert modeled(Work("mobilenet_v2", 192, 32)).step == pytest.approx(
        4 * step
    )
    assert modeled(Work("mobilenet_v2", 96, 64)).step == pytest.approx(2 * step)
    assert modeled(Work("resnet50", 96, 32)).step > 5 * step
    assert modeled(Work("hub:unknown", 96, 32)).step > step


def test_a_short_step_does_not_grow_with_its_products(tmp_path):
    """A step of one image is mostly what every step takes."""
    paces, small = Paces(tmp_path / "plan"), Work("mobilenet_v2", 96, 1)
    paces.learn(small, RunPace(10.0, 2.0))
    known = paces.of(Work("mobilenet_v2", 96, 128))
    more = modeled(Work("mobilenet_v2", 96, 128)).step - modeled(small).step
    assert known.pace.step == pytest.approx(2.0 + MODELED * more)
    assert known.pace.step < 128 * 2.0 / 4
    assert (known.factor, "scaled" in known.basis) == (MODELED, True)


def test_the_most_alike_run_is_scaled(tmp_path):
    paces = Paces(tmp_path / "plan")
    for batch, step in ((1, 2.0), (64, 4.0), (512, 30.0)):
        paces.learn(Work("mobilenet_v2", 96, batch), RunPace(10.0, step))
    known = paces.of(Work("mobilenet_v2", 96, 48))
    assert known.pace.step == pytest.approx(4.0 * 48 / 64)
    assert known.factor == SCALED


def test_without_any_run_the_pace_is_a_guess(tmp_path):
    known = Paces(tmp_path / "plan").of(WORK)
    assert (known.pace, known.factor) == (modeled(WORK), MODELED)
    assert "guess" in known.basis
    assert not (tmp_path / "plan").exists()


def test_runs_beside_the_folder_are_known(tmp_path):
    finished_run(tmp_path / "earlier")
    known = Paces(tmp_path / "plan").of(WORK)
    assert (known.pace, known.factor) == (RunPace(START, 0.5), ELSEWHERE)
    larger = Paces(tmp_path / "plan").of(Work("mobilenet_v2", 192, 32, 100))
    assert larger.factor == SCALED
    assert larger.pace.step == pytest.approx(2.0)
    assert Paces(tmp_path / "plan").of(Work("resnet50", 96, 32)).factor == (
        MODELED
    )


def test_what_was_learned_is_kept_and_known_best(tmp_path):
    finished_run(tmp_path / "earlier")
    paces = Paces(tmp_path / "plan")
    assert not paces.measured(WORK)
    paces.learn(WORK, RunPace(3.0, 0.25))
    for again in (paces, Paces(tmp_path / "plan")):
        assert again.measured(WORK)
        known = again.of(WORK)
        assert (known.pace, known.factor) == (RunPace(3.0, 0.25), MEASURED)
    beside = Paces(tmp_path / "other").of(WORK)
    assert (beside.pace, beside.factor) == (RunPace(3.0, 0.25), ELSEWHERE)


@pytest.mark.parametrize(
    "content", ["", "{}", '{"digits": {"fixed": 1}}', "[[1, 2]]", "[[1"]
)
def test_a_file_of_another_version_is_no_pace(tmp_path, content):
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / "estimate.json").write_text(content)
    assert Paces(tmp_path / "plan").of(WORK).factor == MODELED


@pytest.mark.parametrize("changes", [{"length": {}}, {"train_seconds": 0}])
def test_a_run_that_does_not_say_its_pace_is_none(tmp_path, changes):
    finished_run(tmp_path / "earlier", **changes)
    assert Paces(tmp_path / "plan").of(WORK).factor == MODELED


def test_a_damaged_run_is_none(tmp_path):
    finished_run(tmp_path / "earlier")
    (tmp_path / "earlier" / "config.yaml").write_text("a: [")
    (tmp_path / "second").mkdir()
    (tmp_path / "second" / "metrics.json").write_text(json.dumps([]))
    assert Paces(tmp_path / "plan").of(WORK).factor == MODELED


def test_an_estimate_says_how_sure_it_is():
    sure = Estimate(600, 500, 780, "from this comparison")
    assert sure.sentence() == (
        "About 10 min in all, likely between 8 min and 13 min: from this "
        "comparison."
    )
    assert "less with 2 at once" in sure.sentence(2)
    guess = Estimate(308, 62, 1538, "a guess")
    assert guess.sentence().startswith(
        "About 5 min in all, likely between 62 s and 26 min: a guess."
    )
    assert guess.sentence().endswith(
        "a guess. `measure=True` times a few steps first, to be surer."
    )
