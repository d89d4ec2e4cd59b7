"""What a comparison says on the way and at the end; nothing is trained."""

import itertools
from types import SimpleNamespace

import pytest

from keras_dml.comparison import compare as command
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.errors import RunError
from keras_dml.wording import roughly
from tests.comparison.scripted import RESULTS, some_jobs


def test_what_is_to_go_leaves_out_finished_runs(tmp_path, monkeypatch, caplog):
    """Also those that come later in the plan: a recipe was added."""

    def train(place, listed, processes, on_done):
        for job in listed:
            finished = place.run(job).finished
            place.run(job).path.mkdir(parents=True, exist_ok=True)
            place.run(job).write_metrics(RESULTS)
            on_done(job, 0.0 if finished else 100.0, {})
        return {}

    clock = itertools.count(0, 100)
    monkeypatch.setattr(PlanFolder, "train", train)
    monkeypatch.setattr(
        command, "time", SimpleNamespace(perf_counter=lambda: next(clock))
    )
    jobs = some_jobs(3, recipes=["ln", "bn"])
    place = PlanFolder(tmp_path)
    for job in jobs:
        if job.record.recipe == "ln":
            place.run(job).path.mkdir(parents=True)
            place.run(job).write_metrics(RESULTS)
    with caplog.at_level("INFO"):
        command._run(jobs, place, 1, None)
    told = [one.message for one in caplog.records if " done: " in one.message]
    assert [line.partition("; ")[2] for line in told] == [
        f"about {roughly(200)} to go",
        f"about {roughly(100)} to go",
        "",
    ]


def test_the_report_is_written_if_every_run_fails(tmp_path, monkeypatch):
    def train(place, jobs, processes, on_done):
        failed = {}
        for job in jobs:
            failed[job.run] = "The loss is not finite."
            on_done(job, 1.0, failed)
        return failed

    monkeypatch.setattr(PlanFolder, "train", train)
    with pytest.raises(RunError, match=r"Every run failed.*not finite.*logs"):
        command.compare("digits", tmp_path, recipes=["ln"], protocol="recipe")
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "## Failed runs" in report
    assert "The loss is not finite." in report
    assert (tmp_path / "page.html").is_file()
    assert ",failed," in (tmp_path / "results.csv").read_text(encoding="utf-8")
