import dataclasses
import json

import pytest

from keras_dml.comparison import estimate
from keras_dml.comparison.estimate import Pace, estimate_seconds, measure_pace
from keras_dml.comparison.jobs import make_jobs
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.config.plans import parse_plan
from keras_dml.errors import RunError


def jobs(**values):
    plan = {
        "title": "T",
        "sources": ["digits"],
        "recipes": ["ln", "bn"],
        "protocol": {"kind": "recipe"},
        "budget": {"epochs": 2, "steps_per_epoch": 10},
        "set": {"sampling.batch_size": 32},
    }
    found = make_jobs(parse_plan(plan | values))
    return [dataclasses.replace(job, steps=20) for job in found]


def test_seconds_of_a_pace():
    pace = Pace(fixed=10.0, step=0.5, validation=2.0)
    assert pace.seconds(100, 3) == 10 + 50 + 6


def test_one_trial_for_each_kind_of_run(tmp_path, monkeypatch):
    tried = []

    def measure(config):
        tried.append((config.recipe, config.model.dim))
        return Pace(1.0, 0.1, 0.0)

    monkeypatch.setattr(estimate, "measure_pace", measure)
    listed = jobs(dims=[8, 16], seeds=[0, 1])
    cache = tmp_path / "estimate.json"
    assert estimate_seconds(listed, cache) == pytest.approx(8 * 3.0)
    assert tried == [("ln", 8), ("ln", 16)]
    estimate_seconds(listed, cache)
    assert len(tried) == 2
    assert len(json.loads(cache.read_text())) == 2


@pytest.mark.slow
def test_the_estimate_is_near_what_a_run_takes(tmp_path):
    (job, *_) = jobs()
    pace = measure_pace(job.config)
    assert pace.step > 0
    seconds = []
    PlanFolder(tmp_path).train(
        [job], on_done=lambda job, took, failed: seconds.append(took)
    )
    # The machine is shared; an estimate of another unit would be far off.
    assert 0.2 < pace.seconds(20, 0) / seconds[0] < 5


def test_a_trial_that_fails_says_why():
    (job, *_) = jobs(set={"loss.0.arguments": {"no_such": 1}})
    with pytest.raises(
        RunError, match="A trial of ln on digits failed: .*loss"
    ):
        measure_pace(job.config)
