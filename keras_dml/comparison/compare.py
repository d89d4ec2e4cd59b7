"""Trains the runs of a plan and writes the page about them."""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from keras_dml.brief import Brief
from keras_dml.checks import positive_integer
from keras_dml.comparison.check import check_jobs
from keras_dml.comparison.concatenated import concatenated
from keras_dml.comparison.estimate import announce, estimate_seconds
from keras_dml.comparison.jobs import Job, Tuned, make_jobs
from keras_dml.comparison.page.comparison import write_comparison
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.comparison.plans import PlanLike, PlanOptions, make_plan
from keras_dml.comparison.protocols import get_protocol
from keras_dml.comparison.records import (
    RunRecord,
    by_arm,
    collect,
    trained_runs,
    write_results,
)
from keras_dml.comparison.tunings import (
    PlannedTuning,
    check_tunings,
    plan_tunings,
    run_tunings,
)
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.console import logger, progress_bar
from keras_dml.errors import Mistakes, RunError
from keras_dml.tuning.trials import TuningResult
from keras_dml.wording import duration

STATUSES = ("done", "failed", "left")


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison(Brief):
    """The runs of a plan and the page about them.

    Args:
        folder: The plan's folder.
        records: The records of its runs.
        report: The page, or `None` after a dry run.
        seconds: Estimated seconds of all remaining trainings, one after the
            other. Defaults to `None`: not estimated.
        trials_left: Number of tuning trials that remain before the runs.
            Defaults to `0`.
        metric: The metric that ranks the arms when the object is printed.
            Defaults to `"map@r"`.
    """

    folder: Path
    records: list[RunRecord]
    report: Path | None = None
    seconds: float | None = None
    trials_left: int = 0
    metric: str = "map@r"

    def count(self, status: str) -> int:
        """Counts the runs that are `"done"`, `"failed"` or `"left"`."""
        return len({r.run for r in self.records if r.status == status})

    @property
    def runs(self) -> set[str]:
        """The names of the runs of the plan."""
        return {record.run for record in trained_runs(self.records)}

    @property
    def failed(self) -> dict[str, str]:
        """Maps the name of each failed run to the reason."""
        return {r.run: r.error for r in self.records if r.status == "failed"}

    def summary(self) -> dict[str, Any]:
        """Returns places, counts and errors as plain values, for JSON."""
        return {
            "folder": str(self.folder),
            "report": str(self.report) if self.report else None,
            **{key: self.count(key) for key in STATUSES},
            "trials_left": self.trials_left,
            "seconds_estimated": self.seconds,
            "errors": self.failed,
        }

    def _brief_title(self) -> str:
        counts = ", ".join(
            f"{self.count(status)} {status}" for status in STATUSES
        )
        return f"Comparison in {self.folder}: {counts}"

    def _brief_rows(self) -> list[dict[str, Any]]:
        """Averages each arm over data, networks and seeds, best first."""
        done = [r for r in trained_runs(self.records) if r.status == "done"]
        values = {
            arm: [r.after[self.metric] for r in runs if self.metric in r.after]
            for arm, runs in by_arm(done).items()
        }
        rows = [
            {"arm": arm, self.metric: sum(own) / len(own), "runs": len(own)}
            for arm, own in values.items()
            if own
        ]
        return sorted(rows, key=lambda row: -row[self.metric])


def compare(
    plan: PlanLike,
    output: str | Path | None = None,
    *,
    processes: int = 1,
    dry_run: bool = False,
    estimate: bool = True,
    **options: Unpack[PlanOptions],
) -> Comparison:
    """Trains and measures all runs of a plan, and writes tables about them.

    Call it again on an unfinished folder to continue: it keeps finished runs,
    resumes interrupted ones and repeats failed ones.

    Args:
        plan: A plan's name (see `keras-dml plans`) or `PLAN.yaml`; with
            `recipes` a source of data. In Python also a `PlanConfig`, or with
            `recipes` a list of sources.
        output: The plan's folder. Defaults to `runs/NAME`.
        processes: How many runs train at once. Defaults to `1`.
        dry_run: Whether to stop before the first run and write nothing.
            Defaults to `False`.
        estimate: Whether to estimate the duration first, from a few training
            steps. Defaults to `True`.
        **options: Changes of the plan: `recipes`, `arms`, `seeds`,
            `backbones`, `dims`, `weights`, `protocol`, `epochs`,
            `steps_per_epoch`, `source`, `data_dir`, `set`; see `PlanOptions`.

    Returns:
        `Comparison`. It prints the mean of each arm.

    Raises:
        UsageError: If the plan has mistakes, or the folder holds another
            plan.
        RunError: If the disk is full, or every run fails.

    Example:

    ```python
    result = keras_dml.compare("photos", recipes=["triplet", "ln"], seeds=3)
    print(result.report)
    ```
    """
    positive_integer("processes", processes)
    made, name = make_plan(plan, options)
    place = PlanFolder(output or Path("runs", name))
    place.check(made)
    jobs, tunings = _checked(made, place)
    metric = next(iter(made.metrics), "map@r")
    with place:
        if not dry_run:
            place.open(made)
        trainings = announce(jobs, tunings, place)
        seconds = None
        if trainings and estimate:
            cache = None if dry_run else place.estimate
            seconds = estimate_seconds(trainings, cache, processes)
        if dry_run:
            records = collect([job.record for job in jobs], place.path)
            left = sum(planned.left for planned in tunings)
            return Comparison(place.path, records, None, seconds, left, metric)
        found = run_tunings(tunings, processes)
        if found:
            best = {key: own.best.parameters for key, own in found.items()}
            jobs = check_jobs(make_jobs(made, best), made.protocol)
        failed = _run(jobs, place, processes)
        records, report = _finish(made, jobs, place, failed, found)
        return Comparison(place.path, records, report, seconds, metric=metric)


def _checked(
    plan: PlanConfig, place: PlanFolder
) -> tuple[list[Job], list[PlannedTuning]]:
    """Makes the runs and the tunings; one error names all mistakes."""
    mistakes = Mistakes()
    with mistakes.collected():
        jobs = check_jobs(make_jobs(plan), plan.protocol)
    with mistakes.collected():
        tunings = plan_tunings(plan, place.path)
    mistakes.check()
    return jobs, check_tunings(tunings, plan)


def _run(
    jobs: Sequence[Job], place: PlanFolder, processes: int
) -> dict[str, str]:
    """Trains the jobs and rewrites `results.csv` after each of them."""
    started = time.perf_counter()
    total = len({job.run for job in jobs})
    trained = done = 0
    with progress_bar() as progress:
        task = progress.add_task("runs", total=total, note="")

        def on_done(job: Job, seconds: float, failed: Mapping[str, str]):
            nonlocal trained, done
            done += 1
            progress.advance(task)
            if not seconds:
                return
            trained += 1
            pace = (time.perf_counter() - started) / trained
            logger.info(
                "%d of %d: %s, %s; about %s to go",
                done,
                total,
                job.run,
                duration(seconds),
                duration(pace * (total - done)),
            )
            records = [job.record for job in jobs]
            write_results(collect(records, place.path, failed), place.results)

        return place.train(jobs, processes, on_done)


def _finish(
    plan: PlanConfig,
    jobs: Sequence[Job],
    place: PlanFolder,
    failed: Mapping[str, str],
    found: Mapping[Tuned, TuningResult],
) -> tuple[list[RunRecord], Path]:
    """Writes the results and the page."""
    records = collect([job.record for job in jobs], place.path, failed)
    if records and all(record.status == "failed" for record in records):
        raise RunError(
            f"Every run failed, the first with: {records[0].error} Their "
            f"output is in {place.path / 'logs'}."
        )
    if get_protocol(plan.protocol).concatenates:
        records += concatenated(records, place.path / "runs")
    write_results(records, place.results)
    return records, write_comparison(plan, records, place.path, found)
