"""What a page says about results before and after training."""

import dataclasses
import json
import types

import pytest

from keras_dml.evaluation.open_set.thresholds import Threshold
from keras_dml.report import sections
from keras_dml.report.sections import (
    Material,
    flags,
    kept_weights,
    result,
    thresholds,
    training,
    way,
)
from keras_dml.run.history import History
from keras_dml.run.run_threshold import RunThreshold
from tests.conftest import ROOT

INTERPOLATION = {
    "share": 0.75,
    "kept": False,
    "values": {"0": 0.6, "0.75": 0.8, "1": 0.7},
    "pretrained": 0.5,
}


def metrics_of(**changes):
    """What `fit` writes for a pretrained network."""
    gain = {"gain": 0.3, "low": 0.1, "high": 0.4}
    return {
        "selected_by": "validation map@r",
        "pretrained_features": "pretrained backbone",
        "image_size": 192,
        "natural_size": 96,
        "shrinkage": 0.6,
        "off_the_shelf": {"map@r": 0.2, "nmi": 0.5},
        "pretrained": {"map@r": 0.25, "nmi": 0.6},
        "before": {"map@r": 0.4, "nmi": 0.7},
        "after": {"map@r": 0.5, "nmi": 0.8},
        "gains": {"off_the_shelf": {"map@r": gain}},
        "interpolation": INTERPOLATION,
        **changes,
    }


def result_of(metrics):
    run = types.SimpleNamespace(metrics=metrics)
    return result(Material(run, None, None, True, 0))


def test_the_gain_is_over_the_network_off_the_shelf():
    found = result_of(metrics_of())
    assert found["columns"] == [
        "pretrained backbone",
        "at 192 pixels",
        "at the start",
        "trained",
    ]
    kept = INTERPOLATION | {"share": 0.0, "kept": True}
    assert result_of(metrics_of(interpolation=kept))["columns"][-1] == "kept"
    headline, clusters = found["results"]
    assert headline == found["headline"]
    assert headline["cells"] == [0.2, 0.25, 0.4, 0.5]
    assert headline["gain"] == pytest.approx(0.3)
    assert headline["interval"]["low"] == 0.1
    assert clusters["interval"] is None
    assert found["conclusion"][0].startswith(
        "The trained network is better than the pretrained"
    )


def test_results_of_version_0_1_are_compared_with_their_features():
    file = ROOT / "tests" / "run" / "version_0_1" / "metrics.json"
    metrics = json.loads(file.read_text())
    found = result_of(metrics)
    assert found["columns"] == ["raw pixels", "at the start", "trained"]
    before, after = metrics["pretrained"]["map@r"], metrics["after"]["map@r"]
    assert found["headline"]["gain"] == after - before
    assert found["headline"]["interval"] is None
    assert found["conclusion"] == []
    assert way(metrics) == []


def test_a_run_on_all_classes_says_where_its_numbers_are_from():
    (flag,) = flags({"final": True, "seen": False})
    assert flag["name"] == "final"
    assert "measured run before it" in flag["meaning"]


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        (
            {},
            "75 % of the way from the start to those of the epoch with the "
            "best validation map@r",
        ),
        (
            {"interpolation": INTERPOLATION | {"share": 1.0}},
            "those of the epoch with the best validation map@r",
        ),
        (
            {"interpolation": INTERPOLATION | {"share": 0.0, "kept": True}},
            "those of the pretrained network",
        ),
        (
            {"interpolation": {}, "selected_by": "last epoch"},
            "those of the last epoch",
        ),
    ],
)
def test_the_weights_that_were_kept_are_named(changes, kept):
    assert kept_weights(metrics_of(**changes)) == kept


@pytest.mark.parametrize(
    ("share", "kept", "chosen"),
    [
        (0.75, False, "75 %"),
        (0.0, False, "0 %"),
        (0.0, True, "pretrained backbone"),
    ],
)
def test_one_place_on_the_way_is_chosen(share, kept, chosen):
    found = INTERPOLATION | {"share": share, "kept": kept}
    places = way(metrics_of(interpolation=found))
    assert [one["place"] for one in places] == [
        "pretrained backbone",
        "0 %",
        "75 %",
        "100 %",
    ]
    assert [one["value"] for one in places] == [0.5, 0.6, 0.8, 0.7]
    assert [one["place"] for one in places if one["chosen"]] == [chosen]


def test_of_two_near_places_one_is_chosen():
    values = {"0.501": 0.7, "0.504": 0.8}
    found = INTERPOLATION | {"share": 0.504, "kept": False, "values": values}
    places = way(metrics_of(interpolation=found))
    assert [one["value"] for one in places if one["chosen"]] == [0.8]


@pytest.mark.parametrize(
    ("metric", "at"), [("cosine", -4.0), ("euclidean", -2)]
)
def test_thresholds_are_on_the_axis_of_the_histograms(monkeypatch, metric, at):
    """Squared distances stood below an axis of distances."""
    one = RunThreshold(
        Threshold(-4.0, 0.01, 0.01, 0.2, 100, 50, metric, "pairs"), 0.1, 10, 5
    )
    monkeypatch.setattr(sections, "thresholds_of", lambda run, rates: [one])
    material = Material(None, None, None, metric == "cosine", 0)
    (shown,) = thresholds(material)["thresholds"]
    assert shown["at"] == at
    few = dataclasses.replace(one, measured_on="images of the measured run")
    monkeypatch.setattr(sections, "thresholds_of", lambda run, rates: [few])
    found = thresholds(material)
    assert found["calibrated_on"] == "images"
    assert "classes that trained" in found["caution"]
    assert (shown["target_fmr"], shown["num_impostors"]) == (0.01, 100)


@pytest.mark.parametrize("rate", [0.2, None])
def test_few_pairs_have_the_threshold_of_a_search(monkeypatch, rate):
    """The page showed none, and `search` had one."""
    one = RunThreshold(
        Threshold(0.5, rate, rate, 0.2, 9, 5, "cosine", "pairs"), 0.1, 10, 5
    )
    monkeypatch.setattr(sections, "thresholds_of", lambda run, rates: [])
    found = (one if rate else None, "too few")
    monkeypatch.setattr(sections, "usual_threshold", lambda run: found)
    shown = thresholds(Material(None, None, None, True, 0))["thresholds"]
    assert [row["target_fmr"] for row in shown] == [rate] * bool(rate)


def test_the_epochs_of_a_refit_are_counted():
    """A page called half of the epochs the refit, also where none was."""
    stages = (
        (["main/train"] * 3, 0, ""),
        (["main/a", "refit/a"], 1, " of the refit"),
        (["search/a", "main/a"], 0, " of the last stage"),
    )
    for phases, count, of in stages:
        run = types.SimpleNamespace(
            config=types.SimpleNamespace(
                evaluation=types.SimpleNamespace(monitor="map@r"), minutes=None
            ),
            metrics=metrics_of(refit=True),
            history=History(phases),
        )
        found = training(Material(run, None, None, True, 0))
        assert (found["refit_epochs"], found["of_stage"]) == (count, of)
