import csv
import dataclasses

import pytest

from keras_dml.comparison.records import (
    RunRecord,
    collect,
    counts_in_words,
    write_results,
)
from keras_dml.errors import UsageError
from keras_dml.run.folder import RunFolder
from tests.comparison.scripted import some_jobs

DONE = RunRecord(
    run="a",
    source="omniglot",
    backbone="small_cnn",
    weights="none",
    dim=8,
    arm="ln, scale 4.0",
    recipe="ln",
    line="ln",
    factors={"model.scale": 4.0},
    seed=1,
    status="done",
    pretrained={"recall@1": 0.1, "map@r": 0.2},
    before={"recall@1": 0.3, "map@r": 0.4},
    after={"recall@1": 0.5, "map@r": 0.6},
    validation={"map@r": 0.7},
    train_seconds=8.0,
)


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_one_row_for_each_run_and_metric(tmp_path):
    failed = dataclasses.replace(
        DONE, run="b", status="failed", after={}, error='a "quoted", word'
    )
    write_results([DONE, failed], tmp_path / "results.csv")
    first, second, third = rows(tmp_path / "results.csv")
    assert (first["metric"], first["value"], first["before"]) == (
        "recall@1",
        "0.5",
        "0.3",
    )
    assert first["validation"] == ""
    assert (second["metric"], second["pretrained"], second["validation"]) == (
        "map@r",
        "0.2",
        "0.7",
    )
    assert first["model.scale"] == second["model.scale"] == "4.0"
    assert (third["run"], third["metric"], third["error"]) == (
        "b",
        "",
        'a "quoted", word',
    )


def test_what_is_not_finished_is_to_do_running_or_failed(tmp_path):
    jobs = some_jobs(3)
    with RunFolder(tmp_path / "runs" / jobs[2].run) as running:
        running.lock()
        records = collect(
            [job.record for job in jobs], tmp_path, {jobs[1].run: "killed"}
        )
    to_do, failed, begun = records
    assert (to_do.status, to_do.after) == ("to do", {})
    assert (failed.status, failed.error) == ("failed", "killed")
    assert begun.status == "running"
    assert counts_in_words([*records, DONE]) == (
        "4 runs: 1 done, 1 running, 1 to do, 1 failed"
    )


def test_a_damaged_metrics_file_is_refused_by_name(tmp_path):
    (job,) = some_jobs(1)
    run = RunFolder(tmp_path / "runs" / job.run)
    run.path.mkdir(parents=True)
    run.write_metrics({"after": {"map@r": 0.5}})
    with pytest.raises(UsageError, match=r"metrics\.json must hold the res"):
        collect([job.record], tmp_path)
