"""How long a run trains."""

import dataclasses

import keras
import numpy as np
import pytest
from PIL import Image

from keras_dml import distribute
from keras_dml.config import flags_of, resolve
from keras_dml.config.data_sections import LONGEST_EPOCH
from keras_dml.data import large_photos
from keras_dml.errors import UsageError
from keras_dml.run import minutes as run_minutes
from keras_dml.run import pace as pace_module
from keras_dml.run.batches import make_sampler
from keras_dml.run.data import RunData, StageData, stage_data
from keras_dml.run.length import (
    describe_length,
    is_open,
    later_trainings,
    with_length,
)
from keras_dml.run.pace import TrainingPace, measure_pace
from tests.run import made_up

# 120 images; an epoch has 5 steps of 12 images and sees half of them.
DATA = made_up.stage()
STEP = TrainingPace(step=1.0, image=0.0)
OPEN = "stages=[{phases: [{epochs: null}]}]"
TWO = "stages=[{phases: [{epochs: null, share: 2.0}, {name: b, epochs: null}]}]"


@pytest.fixture(autouse=True)
def costs(monkeypatch):
    """What a run takes beside training, in round numbers."""
    monkeypatch.setattr(run_minutes, "EXPORT_SECONDS", 45.0)
    monkeypatch.setattr(run_minutes, "PAGE_PASSES", 6)


def settings(*overrides, minutes=None):
    config = resolve(
        "norm_softmax",
        "omniglot",
        overrides=[
            OPEN,
            "sampling.batch_size=12",
            "sampling.steps_per_epoch=5",
            "evaluation.every=null",
            "passes=8",
            *overrides,
        ],
    )
    return config.changed(minutes=minutes)


def lengths(config, stage=0):
    return [phase.epochs for phase in config.stages[stage].phases]


def planned(*overrides, minutes=None, data=DATA, **arguments):
    config = settings(*overrides, minutes=minutes)
    return with_length(config, 0, data, **arguments)


def test_passes_bound_the_length():
    config = planned()
    assert lengths(config) == [16]
    assert config.evaluation.every == 4
    assert not is_open(config, 0)


FEW = StageData(made_up.manifest(classes=2), None)


@pytest.mark.parametrize(
    ("data", "overrides"),
    [
        # 2 classes of 4 images are a batch of 8.
        (FEW, ["sampling.kind=balanced"]),
        (FEW, ["sampling.kind=random", "sampling.batch_size=32"]),
        (DATA, ["sampling.kind=balanced", "sampling.classes=5"]),
    ],
    ids=["few classes", "few images", "classes per batch"],
)
def test_batches_are_as_large_as_they_can_be(data, overrides):
    """`batch_size` was counted, whatever fits into a batch."""
    config = planned("passes=40", *overrides, data=data)
    rows = len(make_sampler(data.fit, config)(0)[0])
    seen = lengths(config)[0] * 5 * rows / len(data.fit)
    assert 40 - 5 * rows / len(data.fit) < seen <= 40
    said = describe_length(config, 0, data)
    assert f"each learning from {rows} images" in said
    assert said.endswith(f"each training image is seen {seen:,.1f} times")


def test_longer_epochs_of_few_classes_stay_within_the_passes():
    pace = TrainingPace(step=1.0, image=0.0)
    config = planned(
        *("sampling.kind=balanced", "passes=4"), data=FEW, minutes=60, pace=pace
    )
    # 20 images, 8 a step: ten steps see each of them four times.
    assert lengths(config)[0] * config.sampling.steps_per_epoch == 10


def test_no_image_is_seen_more_often_than_asked():
    """2.67 epochs became 3."""
    assert lengths(planned("passes=1", "sampling.steps_per_epoch=4")) == [2]
    assert lengths(planned("passes=1", "sampling.steps_per_epoch=6")) == [1]


def test_one_pass_is_at_least_an_epoch():
    assert lengths(planned("passes=1", "sampling.steps_per_epoch=500")) == [1]


@pytest.mark.parametrize("minutes", [2, 3, 60])
def test_minutes_bound_the_length(minutes):
    """45 seconds are fixed, and an epoch of 5 steps takes 5."""
    config = planned(minutes=minutes, pace=STEP)
    assert lengths(config) == [min(16, (60 * minutes - 45) // 5)]


def test_minutes_alone_bound_the_length_of_few_images():
    """40 passes over ETH-80 were 750 steps, in 10 minutes and in 30."""
    for minutes in (3, 60):
        config = planned("passes=null", minutes=minutes, pace=STEP)
        (epochs,) = lengths(config)
        steps = epochs * config.sampling.steps_per_epoch
        # The last epoch is validated, which may cost a few.
        assert 0 <= 60 * minutes - 45 - steps < max(15, 0.02 * steps)


def test_a_stage_has_no_thousands_of_epochs():
    """Of a tenth of a second, each of which writes all weights."""
    fast = TrainingPace(step=0.002, image=0.0)
    config = planned("passes=null", minutes=2, pace=fast)
    (epochs,) = lengths(config)
    steps = config.sampling.steps_per_epoch
    assert 50 < epochs <= 100 and steps % 5 == 0
    assert 70 < epochs * steps * 0.002 <= 75
    # The end of the passes bounds them as well.
    (epochs,) = lengths(planned(minutes=2, pace=fast))
    assert epochs == 16


def test_a_run_without_any_bound_is_refused():
    with pytest.raises(UsageError, match="`minutes` and `passes` are null"):
        planned("passes=null")


def test_seconds_elsewhere_leave_fewer_epochs():
    """Test images take 60 s, 14 validations 17, and reading 20."""
    arguments = {
        "minutes": 3,
        "pace": TrainingPace(step=1.0, image=0.01),
        "test_images": 6000,
    }
    alone = StageData(DATA.fit, None)
    assert lengths(planned(**arguments, data=alone)) == [15]
    assert lengths(planned(**arguments)) == [10]
    assert lengths(planned(**arguments, seconds_used=20)) == [7]


def test_a_short_training_pays_for_the_validations_that_it_has():
    """Eight were paid for, though an epoch has one: no epoch was left."""
    pace = TrainingPace(step=1.0, image=0.05)
    config = planned(minutes=1, pace=pace, seconds_used=-40)
    # 6 s a validation; 19 s are left for epochs of 5 s.
    assert lengths(config) == [1]
    assert lengths(planned(minutes=1, pace=pace, seconds_used=-45)) == [2]


def test_a_validation_after_every_epoch_takes_time_in_every_epoch():
    """It was counted as eight validations, whatever their number."""
    pace = TrainingPace(step=1.0, image=0.05)
    config = planned("evaluation.every=1", minutes=2, pace=pace)
    # 6 s a validation: 6 of them for the page, 1 an epoch.
    assert lengths(config) == [(120 - 45 - 6 * 6) // (5 + 6)]


@pytest.mark.parametrize("count", [1, 4, 10])
def test_each_share_of_the_interpolation_takes_a_validation(count, monkeypatch):
    """Five passes were planned, whatever their number."""
    monkeypatch.setattr(run_minutes, "PAGE_PASSES", 1)
    shares = [number / count for number in range(count + 1)]
    config = planned(
        f"evaluation.interpolate={shares}",
        "evaluation.every=1",
        minutes=3,
        pace=TrainingPace(step=1.0, image=0.05),
    )
    assert lengths(config) == [(180 - 45 - 6 * (count + 1)) // (5 + 6)]


def test_too_few_minutes_name_those_that_suffice(caplog):
    slow = TrainingPace(step=30.0, image=0.0)
    assert lengths(planned(minutes=4, pace=slow)) == [1]
    assert not caplog.messages
    assert lengths(planned(minutes=3, pace=slow)) == [1]
    assert caplog.messages[0].startswith(
        "3 minutes are too few on this machine: 1 epoch of 5 steps is trained, "
        "and the command takes about 4 minutes."
    )


@pytest.mark.parametrize(
    ("seconds", "steps"), [(400, 40), (399, 39), (145, 14), (100, 10)]
)
def test_an_epoch_that_is_too_long_for_the_minutes_is_shorter(
    seconds, steps, caplog
):
    """One epoch took an hour with a slow network, whatever the minutes."""
    config = planned(
        "passes=null",
        "sampling.steps_per_epoch=40",
        minutes=(45 + seconds) / 60,
        pace=TrainingPace(step=10.0, image=0.0),
    )
    assert lengths(config) == [1]
    assert config.sampling.steps_per_epoch == steps
    assert not caplog.messages


@pytest.mark.parametrize(("seconds", "steps"), [(79, 39), (40, 20), (39, 39)])
def test_a_refit_is_left_out_where_half_an_epoch_of_both_does_not_fit(
    seconds, steps
):
    config = planned(
        "refit=true",
        "passes=null",
        "sampling.steps_per_epoch=40",
        minutes=(45 + seconds) / 60,
        pace=STEP,
        refit=1.0,
    )
    assert bool(config.refit) == (steps * 2 <= seconds)
    assert lengths(config) == [1]
    assert config.sampling.steps_per_epoch == steps


def test_an_epoch_has_no_more_steps_than_settings_may_say():
    """A training of a day could not be read back."""
    quick = TrainingPace(step=1e-3, image=0.0)
    config = planned("passes=null", minutes=60 * 24, pace=quick)
    assert config.sampling.steps_per_epoch == LONGEST_EPOCH


def test_the_longest_phase_takes_the_rest():
    """Three phases of a training of three epochs had four."""
    phases = "{epochs: null, share: 0.05}, {name: b, epochs: null, share: 0.05}"
    last = "{name: c, epochs: null, share: 0.9}"
    config = planned(f"stages=[{{phases: [{phases}, {last}]}}]", "passes=2")
    assert lengths(config) == [1, 1, 2]
    config = planned(f"stages=[{{phases: [{phases}, {last}]}}]", "passes=4")
    assert lengths(config) == [2, 2, 4]


def test_an_epoch_has_ten_steps_whatever_the_minutes(caplog):
    config = planned(
        "sampling.steps_per_epoch=40",
        minutes=1,
        pace=TrainingPace(step=10.0, image=0.0),
    )
    assert lengths(config) == [1]
    assert config.sampling.steps_per_epoch == 10
    assert "1 epoch of 10 steps is trained, and the command takes about 3 " in (
        caplog.text
    )


def test_a_refit_that_does_not_fit_the_minutes_is_left_out(caplog):
    """Ten minutes became twelve and a half on a slow machine."""
    slow = TrainingPace(step=20.0, image=0.0)
    given = {"pace": slow, "refit": 1.2, "again": 0.5}
    # 45 s are fixed, and an epoch takes 100, its refit 120.
    assert planned("refit=true", minutes=6, **given).refit
    assert not caplog.messages
    config = planned("refit=true", minutes=5, **given)
    assert (config.refit, lengths(config)) == (None, [1])
    assert caplog.messages == [
        "5 minutes are too few on this machine to train once more on what "
        "validates: the refit is left out."
    ]
    assert planned("refit=true", minutes=1, **given).refit is None
    assert "takes about 4 minutes" in caplog.text


def test_settled_phases_take_part_of_the_time(caplog):
    """The minutes hold the whole stage, not only its open phase."""
    warm_up = "stages=[{phases: [{epochs: 4}, {name: b, epochs: null}]}]"
    (first, rest) = lengths(planned(warm_up, minutes=2, pace=STEP))
    assert first == 4
    assert 45 + 5 * (first + rest) <= 120
    assert lengths(planned(warm_up)) == [4, 4]
    assert not caplog.messages
    assert lengths(planned(warm_up, minutes=1, pace=STEP)) == [4, 1]
    assert "5 epochs of 5 steps are trained" in caplog.text
    assert "takes about 2 minutes" in caplog.text


REFITS = ("refit=true", "evaluation.interpolate=[0.5, 1.0]")


@pytest.mark.parametrize("classes", [12, 40])
def test_minutes_are_kept_for_a_refit_that_may_follow(classes):
    """They were also kept where nothing validates: half of them was lost."""
    images = made_up.manifest(classes=classes)
    run = RunData(images, DATA.fit, seen=False, partial=False, skipped=0)
    config = settings(*REFITS, "data.validation_images=null")
    part = stage_data(run, config.stages[0], config)
    later = later_trainings(config, run, part)
    validates = classes == 40
    assert (part.validation is not None) is validates
    assert later == {"refit": float(validates), "again": 0.0}
    said = describe_length(with_length(config, 0, part), 0, part)
    assert ("then as many in any refit" in said) is validates


def test_a_final_training_shares_the_minutes():
    """It traces once more, and takes twice the epochs of this one."""
    pace = TrainingPace(step=1.0, image=0.0, tracing=20.0)
    config = planned("evaluation.every=1", minutes=4, pace=pace, again=2.0)
    assert lengths(config) == [(240 - 45 - 2 * 20) // (3 * 5)]
    config = planned(
        "evaluation.every=1", minutes=4, pace=pace, again=2.0, refit=1.0
    )
    assert lengths(config) == [(240 - 45 - 3 * 20) // (4 * 5)]


def test_a_final_training_looks_at_all_images_and_embeds_the_test_ones_again():
    """The minutes had no time for either."""
    pace = TrainingPace(step=1.0, image=0.05)
    given = {"minutes": 4, "pace": pace, "again": 2.0, "test_images": 200}
    alone = StageData(DATA.fit, None)
    config = planned("evaluation.every=1", data=alone, **given)
    # 200 test images twice, and 240 of the final training.
    assert lengths(config) == [(240 - 45 - 640 * 0.05) // (3 * 5)]


def test_later_trainings_of_a_head_alone_compute_its_features_anew():
    """Four views of each of 120 images were not planned for."""
    frozen = "stages=[{phases: [{epochs: null, freeze: all}]}]"
    pace = TrainingPace(step=1.0, image=0.05)
    open_ = [frozen, "passes=null", "evaluation.every=1"]
    config = planned(*open_, minutes=4, pace=pace, refit=1.0)
    assert lengths(config) == [(240 - 45 - 120 * 4 * 0.05) // (2 * 5)]


def test_phases_divide_the_length_by_their_shares():
    assert lengths(planned(TWO)) == [12, 4]
    assert lengths(planned(TWO, "evaluation.every=1")) == [11, 5]


@pytest.mark.parametrize("passes", range(1, 12))
def test_the_last_epoch_of_each_phase_is_validated(passes):
    for phases in (OPEN, TWO):
        config = planned(phases, f"passes={passes}")
        every = config.evaluation.every
        enough = sum(lengths(config)) >= 2 * every
        assert not enough or all(one % every == 0 for one in lengths(config))
        assert 1 <= sum(lengths(config)) <= max(2, 2 * passes)


@pytest.mark.parametrize(
    "select, every, epochs, steps", [("best", 5, 25, 5), ("last", 9, 27, 5)]
)
def test_no_epoch_is_lost_where_no_validation_chooses_one(
    select, every, epochs, steps
):
    """27 fit; there is a validation after each five, or after each nine."""
    config = planned(
        f"evaluation.select={select}", "passes=60", minutes=3, pace=STEP
    )
    assert config.evaluation.every == every
    assert lengths(config) == [epochs]
    assert config.sampling.steps_per_epoch == steps


@pytest.mark.parametrize("seconds", [70, 149, 151, 222])
def test_longer_epochs_fill_the_minutes(seconds):
    """A tenth of ten minutes was left, which no whole epoch took."""
    pace = TrainingPace(step=2.0, image=0.0)
    config = planned("passes=null", minutes=(45 + seconds) / 60, pace=pace)
    (epochs,), steps = lengths(config), config.sampling.steps_per_epoch
    assert 2.0 * epochs * steps <= seconds < 2.0 * epochs * (steps + 1)


def test_longer_epochs_leave_time_for_validations():
    pace = TrainingPace(step=1.0, image=0.05)
    arguments = {"pace": pace, "minutes": (45 + 36 + 39) / 60}
    config = planned("evaluation.every=1", **arguments)
    # 39 s, and 6 of each validation: 3 epochs of 7 steps.
    assert lengths(config) == [3]
    assert config.sampling.steps_per_epoch == 7


def test_longer_epochs_stay_within_the_passes():
    pace = TrainingPace(step=2.0, image=0.0)
    config = planned(
        "passes=1",
        "sampling.steps_per_epoch=6",
        minutes=(45 + 23) / 60,
        pace=pace,
    )
    # Eleven steps would end in time; ten are all 120 images.
    assert lengths(config) == [1]
    assert config.sampling.steps_per_epoch == 10


@pytest.mark.parametrize(
    "overrides",
    [
        ["stages=[{phases: [{epochs: 4}, {name: b, epochs: null}]}]"],
        ["sampling.steps_per_epoch=null"],
    ],
)
def test_epochs_whose_number_or_images_are_settled_keep_their_steps(overrides):
    config = settings(*overrides, minutes=119 / 60)
    found = with_length(config, 0, DATA, pace=STEP)
    assert found.sampling == config.sampling


def test_fewer_epochs_than_between_two_validations_stay_few():
    """They became as many, which took more than the minutes."""
    config = planned("evaluation.every=30", minutes=2, pace=STEP)
    assert lengths(config) == [15]
    assert config.evaluation.every == 30


@pytest.mark.parametrize(
    "epochs, every", [(1, 1), (7, 1), (14, 2), (15, 3), (24, 6), (40, 10)]
)
def test_settled_epochs_stay_and_are_validated_four_to_eight_times(
    epochs, every
):
    config = planned(f"stages=[{{phases: [{{epochs: {epochs}}}]}}]")
    assert lengths(config) == [epochs]
    assert config.evaluation.every == every
    assert with_length(config, 0, DATA) == config


@pytest.mark.parametrize("epochs, heated", [(None, 3), (4, 1), (20, 5)])
def test_heating_takes_a_share_of_the_epochs_that_are_asked_for(epochs, heated):
    """Four epochs were followed by the three of the recipe."""
    flags = flags_of({"epochs": epochs, "batch_size": 12})
    always = ["evaluation.every=1"]
    config = resolve("hbn", "omniglot", flags=flags, overrides=always)
    assert lengths(with_length(config, 0, DATA)) == [epochs or 12, heated]


def test_open_stages_divide_the_minutes():
    """The first stage took all of them, and the second raised an error."""
    stages = (
        "stages=[{phases: [{epochs: null}]}, "
        "{name: b, phases: [{epochs: null}]}]"
    )
    config = settings(stages, "evaluation.every=1", minutes=2)
    config = with_length(config, 0, DATA, pace=STEP)
    assert lengths(config) == [7]
    config = with_length(config, 1, DATA, pace=STEP, seconds_used=35)
    assert lengths(config, 1) == [8]
    late = settings(stages, "evaluation.every=1", minutes=2)
    late = with_length(late, 1, DATA, pace=STEP, seconds_used=500)
    assert lengths(late, 1) == [1]


def test_the_length_is_told():
    config = planned(minutes=2, pace=STEP)
    assert describe_length(config, 0, DATA, STEP) == (
        "75 steps, each learning from 12 images, in 15 epochs of 5 steps, "
        "about 75 s; each training image is seen 7.5 times"
    )
    untimed = describe_length(config, 0, DATA)
    assert "in 15 epochs of 5 steps; each" in untimed
    config = config.changed(refit=True, evaluation={"interpolate": [1.0]})
    twice = describe_length(config, 0, DATA)
    assert "in 15 epochs of 5 steps, then as many in any refit; each" in twice


def pace_settings():
    config = made_up.settings(
        OPEN,
        "sampling.kind=random",
        "sampling.batch_size=12",
        "sampling.steps_per_epoch=5",
        "augmentation.crop=center",
    )
    return config.changed(data={"train_size": made_up.SIDE})


def test_measuring_the_pace_changes_no_weight():
    models, config = made_up.models(), pace_settings()
    before = [np.array(value) for value in models.trainer.variables]
    pace = measure_pace(models, DATA, config, 0)
    assert pace.step > 0
    assert pace.image > 0
    # The first step traces the graph.
    assert pace.tracing > pace.step
    for old, new in zip(before, models.trainer.variables, strict=True):
        np.testing.assert_array_equal(old, new)


def test_slow_steps_are_timed_less_often(monkeypatch):
    """Nine of 72 seconds were the minutes of a whole command."""
    models, taken = made_up.models(), []
    monkeypatch.setattr(pace_module, "TIMING_SECONDS", 0.0)

    class Counter(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            taken.append(batch)

    fit = models.trainer.fit
    monkeypatch.setattr(
        models.trainer,
        "fit",
        lambda *arguments, callbacks, **options: fit(
            *arguments, callbacks=[*callbacks, Counter()], **options
        ),
    )
    assert measure_pace(models, DATA, pace_settings(), 0).step > 0
    # The first traces the graph.
    assert len(taken) == 1 + 2


def photos_of(folder, count=60, side=64):
    """Files of the made-up images, `side` pixels long."""
    images = DATA.fit.select(np.arange(0, len(DATA.fit), 2)[:count])
    paths = [str(folder / f"{row}.jpg") for row in range(len(images))]
    for pixels, path in zip(images.images, paths, strict=True):
        Image.fromarray(pixels).resize((side, side)).save(path)
    return dataclasses.replace(images, images=None, paths=paths)


@pytest.mark.parametrize(("side", "share"), [(64, 1.0), (64, 0.0), (8, 1.0)])
def test_large_photos_take_longer_the_first_time(
    tmp_path, monkeypatch, side, share
):
    """Of `share` of them copies are kept; the others are decoded each time."""
    fit = photos_of(tmp_path, side=side)
    config = pace_settings().changed(
        augmentation={"crop": "random_resized", "area": (0.3, 1.0)}
    )
    monkeypatch.setattr(
        large_photos, "room", lambda side: int(share * len(fit)) or 1
    )
    with large_photos.keeping():
        pace = measure_pace(
            made_up.models(), StageData(fit, None), config, 0, image_seconds=0.0
        )
        kept = large_photos.kept()
    if side == 8:
        assert (pace.keeping, kept) == (0.0, 0)
        return
    assert pace.keeping > 0
    assert kept == len(fit) if share else kept < len(fit)
    # Twelve images of a step are read again.
    assert share or pace.step > 11 * pace.keeping


def test_photos_are_read_for_the_first_time_within_the_minutes():
    pace = TrainingPace(step=1.0, image=0.0, keeping=0.5)
    given = {"minutes": 4, "pace": pace, "data": StageData(DATA.fit, None)}
    open_ = ("passes=null", "evaluation.every=1")
    config = planned(*open_, **given)
    assert lengths(config) == [(240 - 45 - 120 * 0.5) // 5]
    # A final training keeps copies of its own: half of 120 images more.
    config = planned(*open_, again=0.5, **given)
    assert lengths(config) == [(240 - 45 - 180 * 0.5) // (1.5 * 5)]


def test_the_pace_of_a_frozen_phase_leaves_the_network_trainable():
    models = made_up.models()
    config = pace_settings()
    (stage,) = config.stages
    phase = stage.phases[0].changed(freeze="all")
    config = config.changed(stages=[stage.changed(phases=[phase])])
    measure_pace(models, DATA, config, 0)
    assert models.trainer.get_layer("backbone").trainable


def test_workers_agree_on_the_slowest_pace(monkeypatch):
    monkeypatch.setattr(
        distribute,
        "gather",
        lambda own: [own, (1e3, 0.0, 5.0, 7.0), (0.0, 2e3, 3e3, 0.0)],
    )
    pace = measure_pace(made_up.models(), DATA, pace_settings(), 0)
    assert dataclasses.astuple(pace) == (1e3, 2e3, 3e3, 7.0)
