"""Trials that are judged on several folds."""

import csv
import json

import pytest

from keras_dml.config import resolve
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.errors import RunError, UsageError
from keras_dml.tuning import figures
from keras_dml.tuning.loop import tune
from tests.tuning.command import starter

pytestmark = pytest.mark.slow

FOLDS = 3
GRID = {"kind": "grid", "space": {"model.scale": [4.0, 8.0, 16.0]}}


@pytest.fixture(autouse=True)
def undrawn(monkeypatch):
    monkeypatch.setattr(figures, "draw_tuning", lambda *_: [])


def make_config(changes, number):
    return resolve(
        "norm_softmax",
        "omniglot",
        flags={"data": {"folds": FOLDS, "fold": 0}},
        overrides=[f"{key}={json.dumps(x)}" for key, x in changes.items()],
    )


def search(folder, section=GRID, **options):
    options = {"start": starter(peak=peak), "folds": FOLDS, **options}
    return tune(
        TuningConfig.model_validate(section),
        make_config,
        folder,
        poll=0.02,
        **options,
    )


def peak(config):
    """Best at a scale of 8, on whatever fold; the last fold is easier."""
    value = 0.6 if config.model.scale == 8 else 0.4
    return value + 0.1 * config.data.fold


def starts(folder):
    """How often each training was started."""
    return {
        file.parent.name: len(file.read_text().splitlines())
        for file in folder.glob("runs/*/starts.txt")
    }


def test_the_mean_of_the_folds_decides(tmp_path):
    result = search(tmp_path / "s", processes=2)
    assert result.best.parameters == {"model.scale": 8.0}
    # Two epochs come to three quarters of the peaks 0.6, 0.7 and 0.8.
    assert result.best.value == pytest.approx(0.75 * 0.7)
    assert result.best.epochs == 2 * FOLDS
    assert result.best.seconds == pytest.approx(0.5 * 2 * FOLDS)
    assert len(starts(tmp_path / "s")) == 3 * FOLDS
    with open(tmp_path / "s" / "trials.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[1]["value"]) == pytest.approx(result.best.value)


def test_a_finished_search_starts_nothing(tmp_path):
    first = search(tmp_path / "s")
    again = search(tmp_path / "s")
    assert again.trials == first.trials
    assert set(starts(tmp_path / "s").values()) == {1}


def test_after_a_full_disk_finished_folds_are_kept(tmp_path):
    def code(config):
        return 74 if config.data.fold == 1 else 0

    with pytest.raises(RunError, match="The disk is full.*: fold 1"):
        search(tmp_path / "s", start=starter(peak=peak, code=code))
    result = search(tmp_path / "s")
    assert [trial.state for trial in result.trials] == ["complete"] * 3
    counts = starts(tmp_path / "s")
    first = result.trials[0].run
    assert counts[f"{first}-fold0"] == 1
    assert counts[f"{first}-fold1"] == 2


def test_a_fold_that_fails_fails_the_trial(tmp_path):
    def code(config):
        return int(config.data.fold == 2 and config.model.scale == 8)

    result = search(tmp_path / "s", start=starter(peak=peak, code=code))
    failed = result.trials[1]
    assert failed.state == "failed"
    assert failed.reason.startswith("fold 2: the loss is not finite.")
    assert result.best.parameters != {"model.scale": 8.0}


def test_a_trial_worse_than_the_others_is_spared_its_last_folds(tmp_path):
    section = {
        "kind": "grid",
        "space": {"model.scale": [8.0, 4.0]},
        "prune": {"trials": 1, "epochs": 1},
    }
    result = search(tmp_path / "s", section)
    assert [trial.state for trial in result.trials] == ["complete", "pruned"]
    worse = result.trials[1].run
    names = [name for name in starts(tmp_path / "s") if name.startswith(worse)]
    # The first fold only warms up; the second one stops it.
    assert sorted(names) == [f"{worse}-fold0", f"{worse}-fold1"]
    assert result.trials[1].epochs == 4


def test_an_easy_first_fold_spares_no_trial_the_others(tmp_path):
    """The mean over the folds so far decides, not the highest mean so far."""

    def easy_first(config):
        better = config.model.scale == 8
        return (0.9, 0.6 if better else 0.2, 0.5)[config.data.fold]

    section = {
        "kind": "grid",
        "space": {"model.scale": [8.0, 4.0]},
        "prune": {"trials": 1, "epochs": 1},
    }
    result = search(tmp_path / "s", section, start=starter(peak=easy_first))
    assert [trial.state for trial in result.trials] == ["complete", "pruned"]


def test_folds_must_be_those_of_the_runs(tmp_path):
    with pytest.raises(
        UsageError, match="`folds` must be 1 or .* 3. Received: folds=2"
    ):
        search(tmp_path / "s", folds=2)
    assert not (tmp_path / "s").exists()


def test_other_folds_are_another_search(tmp_path):
    search(tmp_path / "s")
    with pytest.raises(UsageError, match="`folds` was 3, received None"):
        search(tmp_path / "s", folds=1)
