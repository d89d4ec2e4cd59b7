import io

import pytest
from rich.console import Console

from keras_dml import console
from keras_dml.comparison import estimate
from keras_dml.comparison.check import check_jobs
from keras_dml.comparison.compare import compare
from keras_dml.comparison.estimate import (
    estimate_runs,
    measure_pace,
    measure_paces,
)
from keras_dml.comparison.jobs import make_jobs
from keras_dml.comparison.pace import MODELED, Paces, RunPace
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.config.plans import parse_plan
from keras_dml.console import track
from keras_dml.errors import RunError


def plan(**values):
    some = {
        "title": "T",
        "sources": ["digits"],
        "recipes": ["ln", "bn"],
        "protocol": {"kind": "recipe"},
        "budget": {"epochs": 2, "steps_per_epoch": 10},
    }
    return parse_plan(some | values)


def jobs(**values):
    made = plan(**values)
    return check_jobs(make_jobs(made), made.protocol)


def test_one_trial_for_each_kind_of_run(tmp_path, monkeypatch):
    tried = []

    def measure(config, work):
        tried.append((config.recipe, work.batch))
        return RunPace(1.0, 0.1)

    monkeypatch.setattr(estimate, "measure_pace", measure)
    listed = jobs(
        grid={"sampling.batch_size": [16, 32]}, seeds=[0, 1], dims=[8, 16]
    )
    measure_paces(listed, Paces(tmp_path))
    assert sorted(batch for _, batch in tried) == [16, 32]
    measure_paces(listed, Paces(tmp_path))
    assert len(tried) == 2
    found = estimate_runs(listed, Paces(tmp_path))
    assert found.seconds == pytest.approx(
        sum(RunPace(1.0, 0.1).seconds(job.work) for job in listed)
    )
    assert found.low < found.seconds < found.high < 2 * found.seconds
    assert found.basis == "from this comparison"


def test_measure_trains_each_kind_once_and_keeps_what_it_finds(
    tmp_path, monkeypatch, capsys
):
    """A dry run measures, with a bar; the run that follows does not again."""
    tried, bars = [], []

    def measure(config, work):
        tried.append(work.kind)
        return RunPace(2.0, 0.25)

    def seen(items, description, total):
        bars.append((description, total))
        return track(items, description, total)

    monkeypatch.setattr(estimate, "measure_pace", measure)
    monkeypatch.setattr(estimate, "track", seen)
    monkeypatch.setattr(PlanFolder, "train", lambda *args: {})
    made = plan(grid={"sampling.batch_size": [16, 32]}, seeds=[0, 1])
    folder = tmp_path / "plan"
    first = compare(made, folder, measure=True, dry_run=True)
    assert len(first.runs) == 8
    assert len(tried) == len(set(tried)) == 2
    assert bars == [("measuring the pace", 2)]
    assert [entry.name for entry in folder.iterdir()] == ["estimate.json"]
    assert first.estimate.basis == "from this comparison"

    again = compare(made, folder, measure=True, report=False)
    assert len(tried) == 2
    assert again.estimate == first.estimate
    assert "from this comparison" in " ".join(capsys.readouterr().err.split())


class StartError(Exception):
    """Stands for a training: the configuration is enough."""

    def __init__(self, config, folder, log):
        super().__init__()
        self.config = config
        raise self


def test_the_pace_is_that_of_the_longest_phase(monkeypatch):
    monkeypatch.setattr(estimate, "TrainingProcess", StartError)

    def measured(*phases):
        (job, *_) = jobs()
        (stage,) = job.config.stages
        named = [stage.phases[0].changed(**phase) for phase in phases]
        config = job.config.changed(stages=[stage.changed(phases=named)])
        with pytest.raises(StartError) as caught:
            measure_pace(config, job.work)
        (phase,) = caught.value.config.stages[0].phases
        return phase.name

    warm_up = {"name": "warm_up", "epochs": 5, "freeze": "weights"}
    train = {"name": "train", "epochs": 95, "freeze": "none"}
    after = {"name": "after", "epochs": 10, "freeze": "none"}
    assert measured(warm_up, train, after) == "train"
    # The network trains in the shorter phase, and is slower there.
    assert measured(warm_up | {"epochs": 99}, after) == "after"
    assert measured(warm_up) == "warm_up"
    assert measured(after | {"epochs": 95}, train) == "after"
    # Open lengths have shares.
    open_ones = {"epochs": None, "share": 1.0}, {"epochs": None, "share": 4.0}
    assert measured(after | open_ones[0], train | open_ones[1]) == "train"


def test_a_terminal_shows_how_far_measuring_got(tmp_path, monkeypatch):
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(console, "console", screen)
    monkeypatch.setattr(estimate, "measure_pace", lambda *_: RunPace(1.0, 0.1))
    measure_paces(jobs(), Paces(tmp_path))
    assert "measuring the pace" in screen.file.getvalue()
    assert "1/1" in screen.file.getvalue()


def test_a_guess_is_wide(tmp_path):
    found = estimate_runs(jobs(), Paces(tmp_path / "plan"))
    assert found.high == pytest.approx(MODELED * found.seconds)
    assert "guess" in found.basis


@pytest.mark.slow
def test_the_estimate_is_near_what_a_run_takes(tmp_path):
    (job, *_) = jobs(set={"data.image_size": 8})
    pace = measure_pace(job.config, job.work)
    assert pace.step > 0
    seconds = []
    PlanFolder(tmp_path / "plan").train(
        [job], on_done=lambda job, took, failed: seconds.append(took)
    )
    # The machine is shared; an estimate of another unit would be far off.
    assert 0.2 < pace.seconds(job.work) / seconds[0] < 5
    guess = estimate_runs([job], Paces(tmp_path / "elsewhere" / "plan"))
    assert guess.low < seconds[0] < guess.high


@pytest.mark.slow
def test_a_trial_that_fails_says_why():
    (job, *_) = jobs()
    broken, *_ = make_jobs(plan(set={"loss.0.arguments": {"no_such": 1}}))
    with pytest.raises(
        RunError, match="A trial of ln on digits failed: .*loss"
    ):
        measure_pace(broken.config, job.work)
