"""A plan from its first line to its report."""

import contextlib
import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_dml.comparison.announce import announce
from keras_dml.comparison.check import check_jobs
from keras_dml.comparison.concatenated import concatenated
from keras_dml.comparison.jobs import Job, make_jobs
from keras_dml.comparison.page.comparison import write_comparison
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.comparison.plan_searches import (
    PlanSearch,
    best_settings,
    check_searches,
    plan_searches,
    run_searches,
)
from keras_dml.comparison.protocols import budget_in_words, protocol_in_words
from keras_dml.comparison.records import RunRecord, collect, write_results
from keras_dml.comparison.runner import Runner
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.console import logger, progress_bar
from keras_dml.errors import RunError, UsageError
from keras_dml.tuning.result import ArmTuning
from keras_dml.wording import duration


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What a plan came to.

    Args:
        folder: The plan's folder.
        records: Its runs.
        report: The page about them, or `None` after a dry run.
        seconds: How long what is left will take, one training after the
            other, if that was measured.
        trials_left: Trials of searches that come before the runs.
    """

    folder: Path
    records: list[RunRecord]
    report: Path | None = None
    seconds: float | None = None
    trials_left: int = 0

    def count(self, status: str) -> int:
        """How many runs are `"done"`, `"failed"` or `"left"`."""
        runs = {r.run for r in self.records if r.status == status}
        return len(runs)

    @property
    def failed(self) -> dict[str, str]:
        """The last words of runs that failed, by name."""
        return {r.run: r.error for r in self.records if r.status == "failed"}


def compare(
    plan: PlanConfig,
    folder: str | Path,
    *,
    processes: int = 1,
    dry_run: bool = False,
    estimate: bool = True,
) -> Comparison:
    """Trains and measures all runs of a plan, and writes tables about them.

    The same call on a folder that was left unfinished goes on: finished runs
    are kept, an interrupted one is resumed, a failed one is tried again.

    Args:
        plan: The plan, see `load_plan`.
        folder: Where everything goes.
        processes: How many runs train at once. Defaults to `1`.
        dry_run: Whether to stop before the first run; nothing is written.
            Defaults to `False`.
        estimate: Whether to measure first, on a few steps, how long it will
            take. Defaults to `True`.

    Returns:
        `Comparison`.

    Raises:
        UsageError: If the plan has mistakes, or the folder holds another.
        RunError: If the disk is full, or every run fails.

    Example:

    ```python
    from keras_dml.config.plans import load_plan
    from keras_dml.comparison.compare import compare

    print(compare(load_plan("demo"), "runs/demo-plan").report)
    ```
    """
    place = PlanFolder(folder)
    place.check(plan)
    jobs, searches = _checked(plan, place)
    if dry_run:
        seconds = announce(jobs, searches, place.path, processes, estimate)
        return Comparison(
            place.path,
            collect([job.record for job in jobs], place.path),
            seconds=seconds,
            trials_left=sum(search.left for search in searches),
        )
    with contextlib.closing(place):
        place.open(plan)
        seconds = announce(
            jobs, searches, place.path, processes, estimate, place.estimate
        )
        found = run_searches(searches, processes)
        if found:
            settings = best_settings(found)
            jobs = check_jobs(make_jobs(plan, settings), plan.protocol)
        failed = _run(jobs, place, processes)
        return _finish(plan, jobs, place, failed, found, seconds)


def _checked(
    plan: PlanConfig, place: PlanFolder
) -> tuple[list[Job], list[PlanSearch]]:
    """What the plan trains; every mistake of runs and searches at once."""
    mistakes: dict[str, None] = {}
    jobs: list[Job] = []
    searches: list[PlanSearch] = []
    try:
        jobs = check_jobs(make_jobs(plan), plan.protocol)
    except UsageError as error:
        mistakes |= dict.fromkeys(str(error).splitlines())
    try:
        searches = plan_searches(plan, place.path)
    except UsageError as error:
        mistakes |= dict.fromkeys(str(error).splitlines())
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return jobs, check_searches(searches, plan)


def _run(
    jobs: Sequence[Job], place: PlanFolder, processes: int
) -> dict[str, str]:
    started = time.perf_counter()
    total = len({job.run for job in jobs})
    trained = done = 0
    with progress_bar() as progress:
        task = progress.add_task("runs", total=total, note="")

        def on_done(job: Job, seconds: float) -> None:
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
            write_results(
                collect(
                    [job.record for job in jobs], place.path, runner.failed
                ),
                place.results,
            )

        runner = Runner(place.path, processes, on_done)
        runner.run(jobs)
    return runner.failed


def _finish(
    plan: PlanConfig,
    jobs: Sequence[Job],
    place: PlanFolder,
    failed: Mapping[str, str],
    found: Sequence[ArmTuning],
    seconds: float | None,
) -> Comparison:
    records = collect([job.record for job in jobs], place.path, failed)
    if records and all(record.status == "failed" for record in records):
        raise RunError(
            f"Every run failed, the first with: {records[0].error} Their "
            f"output is in {place.path / 'logs'}."
        )
    if plan.protocol.kind == "cross_validation" and plan.protocol.concatenated:
        records += concatenated(records, place.path / "runs")
    write_results(records, place.results)
    report = write_comparison(
        plan.title,
        records,
        plan.findings,
        plan.metrics,
        plan.paper_values,
        place.path,
        about=" ".join([plan.about.strip(), plan.paper]).strip(),
        protocol=protocol_in_words(plan.protocol),
        budget=budget_in_words(plan.budget),
        searches=found,
    )
    return Comparison(place.path, records, report, seconds)
