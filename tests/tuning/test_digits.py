"""A search with real trainings."""

import csv
import json

import pytest

from keras_dml.config import load_run_config, resolve
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.tuning.loop import tune

SMALL = {
    "data": {"folds": 2, "fold": 0},
    "sampling": {"steps_per_epoch": 20, "batch_size": 32},
    "model": {"dim": 16},
    "stages": [{"phases": [{"epochs": 2}]}],
    "evaluation": {"every": 1},
}


@pytest.mark.slow
def test_digits(tmp_path):
    def make_config(changes, number):
        overrides = [f"{key}={x}" for key, x in changes.items()]
        return resolve(
            "norm_softmax", "digits", flags=SMALL, overrides=overrides
        )

    section = TuningConfig.model_validate(
        {
            "kind": "grid",
            "monitor": "recall@1",
            "space": {"optimizer.backbone.lr": [1e-3, 1e-8]},
        }
    )
    result = tune(section, make_config, tmp_path / "s", processes=2)
    assert [trial.state for trial in result.trials] == ["complete"] * 2
    assert result.best.parameters == {"optimizer.backbone.lr": 1e-3}
    for trial in result.trials:
        run = tmp_path / "s" / "runs" / trial.run
        rate = load_run_config(run / "config.yaml").optimizer.backbone.lr
        assert rate == trial.parameters["optimizer.backbone.lr"]
        with open(run / "history.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        values = [float(row["val_recall@1"]) for row in rows]
        assert trial.epochs == len(rows) == 2
        assert trial.value == max(values)
        metrics = json.loads((run / "metrics.json").read_text())
        assert metrics["oracle"] is False
    assert result.trials[0].value > result.trials[1].value
