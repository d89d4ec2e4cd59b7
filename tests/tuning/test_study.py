"""The trials of a search, drawn without training."""

import contextlib
import math

import numpy as np
import optuna
import pytest

from keras_dml.config.tuning_section import TuningConfig
from keras_dml.tuning.space import TuningSpace
from keras_dml.tuning.study import TuningStudy, quiet_optuna
from tests.tuning.command import GRID, TPE


@contextlib.contextmanager
def study_of(folder, section):
    with (
        quiet_optuna(),
        contextlib.closing(
            TuningStudy(folder, TuningConfig.model_validate(section))
        ) as study,
    ):
        yield study


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["random", "tpe"])
def test_values_lie_in_their_ranges(tmp_path, kind):
    section = {
        "kind": kind,
        "trials": 24,
        "space": {
            **TPE["space"],
            "model.scale": {"low": 1, "high": 64.0, "step": 0.5},
            "model.pooling": ["max", "average"],
        },
    }
    drawn = []
    with study_of(tmp_path, section) as study:
        while (trial := study.take()) is not None:
            drawn.append(study.changes(trial))
            study.tell(trial, "COMPLETE", 0.5)
    assert len(drawn) == 24
    rates = [point["optimizer.backbone.lr"] for point in drawn]
    assert all(1e-4 <= rate <= 1e-1 for rate in rates)
    # Log-uniform: a third lies below 1e-3; of a uniform draw, 1 in 100.
    assert sum(rate < 1e-3 for rate in rates) >= 3
    assert sum(rate > 1e-2 for rate in rates) >= 3
    dims = {point["model.dim"] for point in drawn}
    assert dims <= set(range(64, 513, 64))
    assert {type(dim) for dim in dims} == {int}
    scales = {point["model.scale"] for point in drawn}
    assert all(1 <= x <= 64 and x * 2 == int(x * 2) for x in scales)
    assert {point["model.pooling"] for point in drawn} == {"max", "average"}


def test_tpe_learns_where_the_best_values_are(tmp_path):
    """Half of the orders of magnitude away that its first trials are."""
    distances = []
    with study_of(tmp_path, {**TPE, "trials": 24}) as study:
        while (trial := study.take()) is not None:
            rate = study.changes(trial)["optimizer.backbone.lr"]
            distances.append(abs(math.log10(rate) + 2.5))
            study.tell(trial, "COMPLETE", -distances[-1])
    assert np.median(distances[14:]) < np.median(distances[:10]) / 2


def test_an_exhausted_space_is_not_drawn_again(tmp_path):
    """Each poll drew 200 more, while another trial was still training."""
    few = {"model.ema": {"low": 0.999, "high": 0.9991}}
    with study_of(tmp_path, {**TPE, "trials": 20, "space": few}) as study:
        while study.take() is not None:
            pass
        drawn = len(study.study.get_trials(deepcopy=False))
        assert len(study.counted()) < 20
        assert study.take() is None
        assert len(study.study.get_trials(deepcopy=False)) == drawn


def test_a_part_of_a_grid_of_millions_is_drawn():
    """All 8 ** 8 points were made, to keep 20 of them."""
    space = {f"loss.0.{name}": list(range(8)) for name in "abcdefgh"}
    section = TuningConfig(kind="grid", trials=20, space=space)
    points = TuningSpace(section).grid()
    assert len({tuple(point.items()) for point in points}) == 20
    small = TuningConfig(kind="grid", space={"a": [1, 2], "b": [3, 4, 5]})
    assert [tuple(one.values()) for one in TuningSpace(small).grid()] == [
        (1, 3), (1, 4), (1, 5), (2, 3), (2, 4), (2, 5)
    ]  # fmt: skip


def test_a_trial_of_a_process_that_ended_is_taken_over(tmp_path):
    with study_of(tmp_path, TPE) as first:
        trial = first.take()
        drawn = first.changes(trial)
        first.report(trial, 0, 0.25)
        with study_of(tmp_path, TPE) as other:
            assert other.changes(other.take()) != drawn
    with study_of(tmp_path, TPE) as second:
        again = second.take()
        assert again.number == trial.number
        assert second.changes(again) == drawn
        assert second.reported(again) == {0}


def test_what_was_interrupted_draws_the_same(tmp_path):
    def draw(folder, number):
        with study_of(tmp_path / folder, {**TPE, "trials": 13}) as study:
            drawn = []
            for _ in range(number):
                trial = study.take()
                changes = study.changes(trial)
                drawn.append(changes)
                value = -changes["optimizer.backbone.lr"]
                study.tell(trial, "COMPLETE", value)
        return drawn

    whole = draw("whole", 13)
    assert draw("parts", 6) + draw("parts", 7) == whole


def test_a_grid_left_half_written_is_completed(tmp_path):
    storage = f"sqlite:///{tmp_path}/study.sqlite3"
    space = TuningSpace(TuningConfig.model_validate(GRID))
    points = space.grid()
    with quiet_optuna():
        begun = optuna.create_study(study_name="tuning", storage=storage)
        begun.enqueue_trial(points[0])
        begun.enqueue_trial(points[1])
    with study_of(tmp_path, GRID) as study:
        taken = [study.take() for _ in points]
        assert study.take() is None
        assert [study.changes(trial) for trial in taken] == [
            space.changes(point) for point in points
        ]


def killed_while_drawing(folder, section, drawn):
    """Leaves a trial with some of its settings, as a kill does."""
    with study_of(folder, section) as study:
        trial = study.study.ask()
        trial.set_user_attr("worker", "gone")
        some = dict([*study.space.section.space.items()][:drawn])
        part = TuningConfig.model_validate({**section, "space": some})
        TuningSpace(part).suggest(trial)
        return trial.number


@pytest.mark.parametrize("drawn", [0, 1])
def test_a_trial_without_its_settings_is_not_counted(tmp_path, drawn):
    """Another process still writes its table; a third one takes it over."""
    with study_of(tmp_path, TPE) as study:
        first = study.take()
        number = killed_while_drawing(tmp_path, TPE, drawn)
        assert [one.number for one in study.counted()] == [first.number]
        again = study.take()
        assert again.number == number
        assert study.changes(again).keys() == TPE["space"].keys()
        assert study.position(number) == 1


@pytest.mark.parametrize("drawn", [0, 1])
def test_a_point_of_a_grid_has_its_settings_at_once(tmp_path, drawn):
    with study_of(tmp_path, GRID) as study:
        number = killed_while_drawing(tmp_path, GRID, drawn)
        counted = study.counted()
        assert len(counted) == 6
        assert study.changes(counted[number]) == study.space.changes(
            study.space.grid()[number]
        )
