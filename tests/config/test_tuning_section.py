"""The `tuning` section of a plan: what it takes, and what it refuses."""

import re

import pytest
from pydantic import ValidationError

from keras_dml.config.tuning_section import (
    PruneConfig,
    RangeConfig,
    TuningConfig,
)
from keras_dml.config.validation import validated
from keras_dml.errors import UsageError

RATE = {"low": 1e-4, "high": 1e-1, "log": True}


def read(space=None, **values):
    space = {"model.scale": [4, 8], "lr": RATE} if space is None else space
    return TuningConfig.model_validate({"space": space, **values})


def test_defaults():
    section = read()
    assert section.kind == "tpe"
    assert section.monitor == "map@r"
    assert section.budget == 20
    assert section.pruning == PruneConfig(trials=5, epochs=1)


def test_a_grid_has_all_its_points_and_prunes_only_if_told():
    space = {"model.scale": [4, 8, 16], "model.dim": [64, 128]}
    assert read(space, kind="grid").budget == 6
    assert read(space, kind="grid", trials=4).budget == 4
    assert read(space, kind="grid", trials=40).budget == 6
    space = {"model.scale": [4, 8]}
    assert read(space, kind="grid").pruning is None
    assert read(space, kind="grid", prune=True).pruning == PruneConfig()
    assert read(prune=False).pruning is None


def test_no_more_trials_than_points():
    space = {
        "model.scale": [4, 8],
        "model.dim": {"low": 64, "high": 192, "step": 64},
        "model.k": {"low": 1, "high": 3},
    }
    assert read(space).budget == 18
    assert read(space, trials=5).budget == 5
    assert read({"a": {"low": 0, "high": 1, "step": 0.25}}).budget == 5
    assert read({**space, "lr": RATE}, trials=50).budget == 50


def test_integers_stay_integers():
    space = {
        "a": {"low": 64, "high": 512, "step": 64},
        "b": {"low": 1.0, "high": 16},
        "c": {"low": 0, "high": 1, "step": 0.25},
    }
    section = read(space)
    whole = {key: values.whole for key, values in section.space.items()}
    assert whole == {"a": True, "b": False, "c": False}
    assert type(section.space["a"].low) is int


def test_reads_what_it_wrote():
    section = read({"lr": {"low": 1e-4, "high": 0.1, "log": True}})
    assert isinstance(section.space["lr"], RangeConfig)
    again = TuningConfig.model_validate(section.model_dump(mode="json"))
    assert again == section


@pytest.mark.parametrize(
    "space, message",
    [
        ([1], "`space`: Input should be a valid dictionary"),
        ({"lr": []}, "`space.lr`: expected a list of values, or `low`"),
        ({"lr": 0.1}, "`low` and `high`. Received: 0.1"),
        ({"lr": [1, 2, 1.0]}, "1.0 is in the list twice"),
        ({"lr": {"low": 1, "hihg": 2}}, "key `space.lr.hihg`. Nearest: 'high'"),
        ({"lr": {"low": 1}}, "`space.lr.high`: Field required"),
        ({"lr": {"low": "a", "high": 2}}, "`space.lr.low` must be"),
        ({"lr": {"low": 2, "high": 2}}, "`low` must be below `high`"),
        ({"lr": {"low": 0, "high": 2, "log": True}}, "positive `low`"),
        ({"lr": {"low": 1, "high": 9, "step": 0}}, "`step` must be positive"),
        (
            {"lr": {"low": 1, "high": 9, "step": 3}},
            "a whole number of steps, such as 7",
        ),
        (
            {"lr": {"low": 1, "high": 9, "step": 2, "log": True}},
            "exclude each other",
        ),
        ({"lr": {"low": 0.0, "high": float("inf")}}, "finite"),
    ],
)
def test_refuses_a_space(space, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        validated(TuningConfig, {"space": space})


def test_names_all_mistakes_of_a_space_at_once():
    space = {"model.dim": {"low": 9, "high": 1}, "model.scale": 4}
    with pytest.raises(UsageError) as error:
        validated(TuningConfig, {"space": space})
    assert "`space.model.dim`" in str(error.value)
    assert "`space.model.scale`" in str(error.value)


def test_a_grid_takes_no_ranges():
    space = {"model.dim": {"low": 64, "high": 128}, "model.scale": [4, 8]}
    with pytest.raises(ValidationError, match="Ranges: `model.dim`"):
        read(space, kind="grid")


def test_more_settings_win_over_its_own():
    section = read({"model.scale": [4, 8]}, trials=3)
    rate = RangeConfig(**RATE)
    wider = section.with_space({"model.scale": [16, 32], "lr": rate})
    assert wider.space["model.scale"] == [16, 32]
    assert wider.space["lr"] == rate
    assert wider.trials == 3
    assert section.space == {"model.scale": [4, 8]}
    assert section.budget == 2
    assert read({}, trials=3).budget == 3
    with pytest.raises(ValueError, match="^a grid takes lists of values only"):
        read({"model.scale": [4, 8]}, kind="grid").with_space({"lr": rate})


@pytest.mark.parametrize(
    "values",
    [
        {"kind": "bayes"},
        {"trials": 0},
        {"trials": 2.5},
        {"monitor": "test_recall@1"},
        {"prune": {"epoch": 2}},
        {"seed": -1},
        {"budget": 3},
    ],
)
def test_refuses_other_values_and_keys(values):
    with pytest.raises(ValidationError):
        read(**values)
