"""The tunings of a plan: what they train, and what is refused beforehand."""

import csv

import pytest

from keras_dml.comparison.compare import compare
from keras_dml.comparison.jobs import count_trials, make_jobs
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.comparison.tunings import (
    check_tunings,
    plan_tunings,
    run_tunings,
)
from keras_dml.config import load_run_config
from keras_dml.config.plans import parse_plan
from keras_dml.data import readers
from keras_dml.errors import UsageError
from keras_dml.run.data import split_data, stage_data
from keras_dml.tuning import loop
from keras_dml.tuning.trials import Trial, TuningResult
from tests.comparison.scripted import RESULTS

RATE = "optimizer.backbone.lr"
RATES = {RATE: [1e-8, 1e-3]}


def tuned(**values):
    return parse_plan(
        {
            "title": "T",
            "sources": ["digits"],
            "recipes": ["norm_softmax"],
            "protocol": {"kind": "cross_validation", "folds": 2},
            "set": {"data.folds": 2, "data.fold": 0},
            "tuning": {"kind": "grid", "space": RATES},
            **values,
        }
    )


def test_trials_have_the_network_and_the_size_of_the_runs(tmp_path):
    plan = tuned(
        backbones=["small_cnn", "resnet50"],
        dims=[32, 64],
        grid={"model.scale": [4.0, 8.0]},
        seeds=[3, 4],
    )
    tunings = plan_tunings(plan, tmp_path)
    configs = [planned.make_config({}, 0) for planned in tunings]
    assert [c.model.backbone for c in configs] == ["small_cnn", "resnet50"]
    assert {(c.model.dim, c.model.scale, c.seed) for c in configs} == {
        (32, 4.0, 3)
    }


def test_trials_never_see_the_test_classes(tmp_path):
    plan = tuned(protocol={"kind": "oracle"})
    (planned,) = plan_tunings(plan, tmp_path)
    assert planned.make_config({}, 0).data.validation == "classes"


def test_trials_are_judged_under_the_protocol_of_the_runs(tmp_path):
    protocol = {"kind": "cross_validation", "folds": 5, "split": "contiguous"}
    (planned,) = plan_tunings(tuned(protocol=protocol, set={}), tmp_path)
    config = planned.make_config({}, 0)
    assert planned.folds == config.data.folds == 5
    assert config.data.fold_split == "contiguous"
    protocol = {"kind": "fixed_validation", "fraction": 0.3}
    (planned,) = plan_tunings(tuned(protocol=protocol, set={}), tmp_path)
    config = planned.make_config({}, 0)
    assert planned.folds == 1
    assert config.data.validation_fraction == 0.3


def test_a_space_of_its_own(tmp_path):
    arms = [
        {"name": "a", "recipe": "ln"},
        {"name": "b", "recipe": "bn", "space": {"model.scale": [2.0, 4.0, 8]}},
    ]
    tunings = plan_tunings(tuned(recipes=[], arms=arms), tmp_path)
    assert [planned.section.budget for planned in tunings] == [2, 6]
    assert [planned.left for planned in tunings] == [2, 6]


LN = {"name": "ln", "recipe": "ln"}
HEATED = {"name": "heated", "recipe": "hln", "tuned_as": "ln"}


def test_an_arm_takes_what_another_found(tmp_path):
    plan = tuned(recipes=[], arms=[LN, HEATED])
    (planned,) = plan_tunings(plan, tmp_path)
    assert planned.tuned.arm == "ln"
    assert count_trials(plan) == 2
    rate = {"optimizer.backbone.lr": 1e-8}
    jobs = make_jobs(plan, {planned.tuned: rate})
    assert {job.record.arm for job in jobs} == {"ln", "heated"}
    assert {job.config.optimizer.backbone.lr for job in jobs} == {1e-8}


def test_an_arm_takes_what_a_space_of_anothers_own_found(tmp_path):
    """Such plans were refused: nothing was to tune for the taker."""
    own = LN | {"space": {RATE: [1e-3, 1e-2]}}
    alone = {"kind": "grid"}
    plan = tuned(recipes=[], arms=[own, HEATED], tuning=alone)
    (planned,) = plan_tunings(plan, tmp_path)
    assert planned.tuned.arm == "ln"
    assert count_trials(plan) == 2
    with pytest.raises(UsageError, match="nothing to tune for ln"):
        tuned(recipes=[], arms=[LN, HEATED], tuning=alone)


@pytest.mark.parametrize("kind", ["fixed_validation", "oracle"])
def test_images_judge_the_trials_where_too_few_classes_train(tmp_path, kind):
    """As they judge the runs: digits has five training classes."""
    plan = tuned(protocol={"kind": kind, "fraction": 0.2}, set={})
    (planned,) = check_tunings(plan_tunings(plan, tmp_path), plan)
    config = planned.make_config({RATE: 1e-3}, 0)
    share = 0.2 if kind == "fixed_validation" else 0.1
    assert config.data.validation_images == share
    data = split_data(readers.read("digits"), config)
    stage = stage_data(data, config.stages[0], config)
    assert stage.held_out == "images"


def test_trials_keep_the_images_that_a_plan_or_a_space_sets(tmp_path):
    share = "data.validation_images"
    fixed = {"kind": "fixed_validation"}
    plan = tuned(protocol=fixed, set={share: 0.3})
    (planned,) = check_tunings(plan_tunings(plan, tmp_path), plan)
    assert planned.make_config({}, 0).data.validation_images == 0.3
    space = {"kind": "grid", "space": {share: [0.2, 0.4]}}
    plan = tuned(protocol=fixed, set={}, tuning=space)
    (planned,) = check_tunings(plan_tunings(plan, tmp_path), plan)
    assert planned.make_config({share: 0.4}, 0).data.validation_images == 0.4
    # Folds hold classes out.
    plan = tuned()
    (planned,) = check_tunings(plan_tunings(plan, tmp_path), plan)
    assert planned.make_config({}, 0).data.validation_images is None


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([HEATED], "must name an arm of the plan"),
        ([LN, HEATED | {"tuned_as": "heated"}], "that is tuned itself"),
        ([LN, HEATED | {"space": {"model.scale": [2.0]}}], "leave out one"),
    ],
)
def test_whose_settings_an_arm_takes(arms, message):
    with pytest.raises(UsageError, match=message):
        tuned(recipes=[], arms=arms)


def test_mistakes_of_all_tunings_come_first(tmp_path):
    arms = [
        {"name": "a", "recipe": "ln"},
        {"name": "b", "recipe": "bn", "space": {"model.scales": [2.0]}},
        {"name": "c", "recipe": "ln", "space": {"model.dim": [64, "wide"]}},
    ]
    plan = tuned(recipes=[], arms=arms, set={"model.dmi": 8})
    with pytest.raises(UsageError) as caught:
        compare(plan, tmp_path / "plan")
    for mistake in ("`model.scales`", "`model.dim`", "`model.dmi`"):
        assert mistake in str(caught.value)
    assert not (tmp_path / "plan").exists()


def test_data_of_equal_names_have_folders_of_their_own(tmp_path):
    sources = [str(tmp_path / name / "shoes") for name in "ab"]
    tunings = plan_tunings(tuned(sources=sources), tmp_path)
    names = [planned.folder.name for planned in tunings]
    assert names == ["shoes-norm-softmax", "shoes-norm-softmax--2"]


def test_what_has_ended_is_not_left(tmp_path):
    (planned,) = plan_tunings(tuned(), tmp_path)
    planned.folder.mkdir(parents=True)
    (planned.folder / "trials.csv").write_text(
        "number,state\n0,pruned\n1,failed\n"
    )
    assert planned.left == 1
    # What failed is tried again only until the settings are found.
    (planned.folder / "best.yaml").touch()
    assert planned.left == 0


def test_a_tuning_that_has_ended_finds_nothing_else(tmp_path, monkeypatch):
    """Its runs may have begun: a failed trial is not tried again."""
    retried = []

    def run(section, make_config, folder, *, retry, **options):
        retried.append(retry)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "best.yaml").touch()

    monkeypatch.setattr(loop, "tune", run)
    tunings = plan_tunings(tuned(), tmp_path)
    run_tunings(tunings)
    run_tunings(tunings)
    assert retried == [True, False]


def test_data_that_are_not_there(tmp_path):
    plan = tuned(sources=["omniglot"])
    with pytest.raises(UsageError, match="no data folder"):
        check_tunings(plan_tunings(plan, tmp_path), plan)


def test_a_finished_folder_has_nothing_left_to_do(tmp_path):
    """A dry run knows the settings that an earlier command has found."""
    plan = tuned(tuning={"kind": "grid", "space": {"model.dim": [32, 64]}})
    folder = tmp_path / "plan"
    before = compare(plan, folder, dry_run=True, estimate=False)
    assert (before.count("to do"), before.trials_left) == (2, 2)

    (planned,) = plan_tunings(plan, folder)
    with PlanFolder(folder) as place:
        place.open(plan)
        planned.folder.mkdir(parents=True)
        (planned.folder / "trials.csv").write_text(
            "number,state\n0,complete\n1,complete\n"
        )
        (planned.folder / "best.yaml").write_text("model.dim: 64\n")
        for job in make_jobs(plan, {planned.tuned: {"model.dim": 64}}):
            place.run(job).create(job.config)
            place.run(job).write_metrics(RESULTS)
    after = compare(plan, folder, dry_run=True)
    assert (after.count("done"), after.trials_left) == (2, 0)
    assert (after.count("to do"), after.seconds) == (0, None)


def test_finished_runs_are_checked_once_the_settings_are_found(
    tmp_path, monkeypatch
):
    """Their tuning was deleted, and the next one finds something else."""
    plan = tuned()
    (planned,) = plan_tunings(plan, tmp_path)
    with PlanFolder(tmp_path) as place:
        place.open(plan)
        for job in make_jobs(plan, {planned.tuned: {RATE: 1e-8}}):
            place.run(job).create(job.config)
            place.run(job).write_metrics(RESULTS)
    result = TuningResult("map@r", [Trial(0, {RATE: 1e-3}, "complete", 0.5)])
    monkeypatch.setattr(loop, "tune", lambda *args, **options: result)
    with pytest.raises(UsageError, match=f"{RATE}` was 1e-08, received 0.001"):
        compare(plan, tmp_path, estimate=False)


def test_arms_that_only_try_other_settings_are_runs_of_their_own(tmp_path):
    arms = [
        {"name": "A", "space": {"model.scale": [4, 8]}},
        {"name": "B", "space": {"model.scale": [4, 8, 16]}},
        {"name": "as A", "tuned_as": "A"},
    ]
    plan = tuned(arms=arms, seeds=[0, 1])
    result = compare(plan, tmp_path, dry_run=True)
    # Two folds; the third arm is the first one under another name.
    assert (result.count("to do"), result.trials_left) == (8, 10)


@pytest.mark.slow
def test_runs_have_what_the_search_found(tmp_path, capsys):
    """A search, the runs after it, and the same command once more."""
    plan = tuned(
        protocol={"kind": "oracle"},
        budget={"epochs": 1, "steps_per_epoch": 15},
        set={
            "data.folds": 2,
            "data.fold": 0,
            "data.image_size": 8,
            "model.dim": 16,
        },
    )
    dry = compare(plan, tmp_path / "plan", dry_run=True, estimate=False)
    assert "2 trials to find settings first" in capsys.readouterr().err
    assert dry.trials_left == 2
    result = compare(plan, tmp_path / "plan", estimate=False)
    (run,) = result.records
    config = load_run_config(result.folder / "runs" / run.run / "config.yaml")
    assert config.optimizer.backbone.lr == 1e-3
    trials = result.folder / "tuning" / "digits-norm-softmax" / "trials.csv"
    with open(trials, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["state"] for row in rows] == ["complete"] * 2
    page = result.report.read_text(encoding="utf-8")
    assert "## Settings found" in page
    assert "optimizer.backbone.lr 0.001" in page
    before = {
        path: path.stat().st_mtime_ns
        for path in result.folder.glob("**/metrics.json")
    }
    assert len(before) == 3
    again = compare(plan, tmp_path / "plan")
    assert again.seconds is None
    assert {path: path.stat().st_mtime_ns for path in before} == before
