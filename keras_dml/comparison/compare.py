"""Trains the runs of a plan and writes the page about them."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from keras_dml.checks import positive_integer
from keras_dml.comparison.check import (
    check_finished,
    check_jobs,
    check_starts,
)
from keras_dml.comparison.comparison import Comparison
from keras_dml.comparison.concatenated import concatenated
from keras_dml.comparison.estimate import (
    Estimate,
    announce,
    estimate_runs,
    measure_paces,
)
from keras_dml.comparison.jobs import Job, Tuned, make_jobs
from keras_dml.comparison.overview import comparison_overview
from keras_dml.comparison.pace import Paces, RunPace
from keras_dml.comparison.page.comparison import write_comparison
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.comparison.plans import PlanLike, PlanOptions, make_plan
from keras_dml.comparison.protocols import get_protocol
from keras_dml.comparison.records import RunRecord, collect, write_results
from keras_dml.comparison.standings import ranked_by
from keras_dml.comparison.tunings import (
    PlannedTuning,
    awaiting,
    check_tunings,
    plan_tunings,
    run_tunings,
    settings_found,
)
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.console import logger, progress_bar, showing_log
from keras_dml.errors import Mistakes, RunError, UsageError
from keras_dml.report import write_report
from keras_dml.tuning.trials import TuningResult
from keras_dml.wording import counted, duration, roughly


def compare(
    plan: PlanLike,
    output: str | Path | None = None,
    *,
    processes: int = 1,
    dry_run: bool = False,
    estimate: bool = True,
    measure: bool = False,
    report: bool = True,
    **options: Unpack[PlanOptions],
) -> Comparison:
    """Trains and measures all runs of a plan, and writes tables about them.

    Call it again on an unfinished folder to continue: it keeps finished runs,
    resumes interrupted ones and repeats failed ones. Call it with further
    recipes, arms, data or seeds to add them to the folder.

    Args:
        plan: A plan's name (see `keras-dml plans`) or `PLAN.yaml`; the folder
            of a comparison; with `recipes` a source of data. In Python also a
            `PlanConfig`, or with `recipes` a list of sources.
        output: The plan's folder. Defaults to `runs/NAME`.
        processes: How many runs train at once. Defaults to `1`.
        dry_run: Whether to stop before the first run and write nothing but
            what `measure` finds. Defaults to `False`.
        estimate: Whether to say first how long the runs take, as far as is
            known. Defaults to `True`.
        measure: Whether to train a few steps first, so that the estimate is
            sure; what it finds is kept. Defaults to `False`.
        report: Whether to write the page of each run, which the page of the
            comparison leads to. Defaults to `True`.
        **options: Changes of the plan: `recipes`, `arms`, `seeds`,
            `backbones`, `dims`, `weights`, `protocol`, `epochs`,
            `steps_per_epoch`, `source`, `data_dir`, `set`; see `PlanOptions`.

    Returns:
        `Comparison`. It prints the mean of each arm.

    Raises:
        UsageError: If the plan has mistakes, would change runs of the folder,
            or gives finished runs other settings than they were trained with.
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
    made = place.grown(made)
    jobs, tunings = _checked(made, place)
    metric = ranked_by(made.metrics)
    with place, showing_log():
        if not dry_run:
            place.open(made)
        logger.info("%s", comparison_overview(jobs, made))
        trainings = announce(jobs, tunings, place)
        expected = None
        if trainings and (estimate or measure):
            paces = Paces(place.path)
            if measure:
                measure_paces(trainings, paces)
            expected = estimate_runs(trainings, paces)
            logger.info(expected.sentence(processes))
        if dry_run:
            records = collect([job.record for job in jobs], place.path)
            left = sum(planned.left for planned in tunings)
            return Comparison(place.path, records, None, expected, left, metric)
        found = run_tunings(tunings, processes)
        if found:
            best = {key: own.best.parameters for key, own in found.items()}
            jobs = check_jobs(make_jobs(made, best), made.protocol)
            check_finished(jobs, place)
        # The estimate counts trials too, which are over.
        failed = _run(jobs, place, processes, None if found else expected)
        if report:
            _write_pages(jobs, place)
        records, page = _finish(made, jobs, place, failed, found)
        return Comparison(place.path, records, page, expected, metric=metric)


def _checked(
    plan: PlanConfig, place: PlanFolder
) -> tuple[list[Job], list[PlannedTuning]]:
    """Makes the runs and the tunings; one error names all mistakes."""
    mistakes = Mistakes()
    tunings: list[PlannedTuning] = []
    with mistakes.collected():
        tunings = plan_tunings(plan, place.path)
    with mistakes.collected():
        known = make_jobs(plan, settings_found(tunings))
        jobs = check_jobs(known, plan.protocol)
    mistakes.check()
    jobs = awaiting(jobs, tunings, plan)
    check_finished(jobs, place)
    check_starts(jobs, place)
    return jobs, check_tunings(tunings, plan)


def _run(
    jobs: Sequence[Job],
    place: PlanFolder,
    processes: int,
    expected: Estimate | None,
) -> dict[str, str]:
    """Trains the jobs and rewrites `results.csv` after each of them."""
    started = time.perf_counter()
    runs = {job.run: job for job in jobs}
    to_do = {name for name, job in runs.items() if not place.run(job).finished}
    total, trained, done = len(runs), 0, 0
    paces = Paces(place.path)
    # The bar knows nothing of runs that were there, nor of how long one takes.
    note = _to_go(expected.seconds / processes) if expected else ""
    with progress_bar(time_left=False) as progress:
        task = progress.add_task("runs", total=total, note=note)

        def on_done(job: Job, seconds: float, failed: Mapping[str, str]):
            nonlocal trained, done
            done += 1
            to_do.discard(job.run)
            progress.advance(task)
            if not seconds:
                return
            trained += 1
            _learn(paces, job, seconds, place)
            left = (time.perf_counter() - started) / trained * len(to_do)
            note = _to_go(left) if left else ""
            progress.update(task, note=note)
            logger.info(
                "%d of %d done: %s, %s%s",
                done,
                total,
                job.run,
                duration(seconds),
                f"; {note}" if note else "",
            )
            records = [job.record for job in jobs]
            write_results(collect(records, place.path, failed), place.results)

        return place.train(jobs, processes, on_done)


def _to_go(seconds: float) -> str:
    return f"about {roughly(seconds)} to go"


def _learn(paces: Paces, job: Job, seconds: float, place: PlanFolder) -> None:
    """Keeps the pace of a run that was not interrupted, for estimates."""
    run = place.run(job)
    if job.work is not None and run.finished:
        training = run.read_metrics().get("train_seconds", seconds)
        if training < seconds:
            paces.learn(job.work, RunPace.of_run(job.work, seconds, training))


def _write_pages(jobs: Sequence[Job], place: PlanFolder) -> None:
    """Writes the pages of finished runs that have none."""
    runs = {job.run: place.run(job) for job in jobs}
    missing = [
        run
        for run in runs.values()
        if run.finished and not run.report.is_file()
    ]
    if missing:
        logger.info("Writing the pages of %s ...", counted(len(missing), "run"))
    # Each page has a bar; some versions of rich show one at a time.
    for run in missing:
        try:
            write_report(run.path)
        except UsageError as error:
            logger.warning("%s has no page: %s", run.path.name, error)


def _finish(
    plan: PlanConfig,
    jobs: Sequence[Job],
    place: PlanFolder,
    failed: Mapping[str, str],
    found: Mapping[Tuned, TuningResult],
) -> tuple[list[RunRecord], Path]:
    """Writes the results and the page; raises then if every run failed."""
    records = collect([job.record for job in jobs], place.path, failed)
    if get_protocol(plan.protocol).concatenates:
        records += concatenated(records, place.path / "runs")
    write_results(records, place.results)
    page = write_comparison(plan, records, place.path, found)
    if all(record.status == "failed" for record in records):
        raise RunError(
            f"Every run failed, the first with: {records[0].error} Their "
            f"output is in {place.path / 'logs'}."
        )
    return records, page
