"""A plan from its first line to its report."""

import contextlib
import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_dml.config.plan_sections import PlanConfig, ProtocolConfig
from keras_dml.console import logger, progress_bar
from keras_dml.errors import RunError
from keras_dml.protocols.check import check_jobs
from keras_dml.protocols.concatenated import concatenated
from keras_dml.protocols.estimate import estimate_seconds
from keras_dml.protocols.jobs import Job, arms, make_jobs, with_changes
from keras_dml.protocols.plan_folder import PlanFolder
from keras_dml.protocols.protocol import (
    budget_in_words,
    protocol_in_words,
    under_protocol,
)
from keras_dml.protocols.records import RunRecord
from keras_dml.protocols.report import write_comparison
from keras_dml.protocols.results import collect, write_results
from keras_dml.protocols.runner import Runner
from keras_dml.run.folder import RunFolder


@dataclasses.dataclass(frozen=True)
class Comparison:
    """What a plan came to.

    Args:
        folder: The plan's folder.
        records: Its runs.
        report: The page about them, or `None` after a dry run.
        seconds: How long the runs that are left will take one after the
            other, if that was measured.
    """

    folder: Path
    records: list[RunRecord]
    report: Path | None = None
    seconds: float | None = None

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
    from keras_dml.protocols.compare import compare

    print(compare(load_plan("demo"), "runs/demo-plan").report)
    ```
    """
    place = PlanFolder(folder)
    place.check(plan)
    jobs = check_jobs(make_jobs(plan), plan.protocol)
    if dry_run:
        seconds = _announce(jobs, place, processes, estimate, keep=False)
        return Comparison(place.path, collect(jobs, place.path), None, seconds)
    with contextlib.closing(place):
        place.open(plan)
        if plan.search is not None:
            changes = _search(plan, place, processes)
            jobs = check_jobs(make_jobs(plan, changes), plan.protocol)
        seconds = _announce(jobs, place, processes, estimate, keep=True)
        failed = _run(jobs, place, processes)
        return _finish(plan, jobs, place, failed, seconds)


def write_plan_report(plan: PlanConfig, folder: str | Path) -> Comparison:
    """Writes tables and report anew from the runs that are there.

    Args:
        plan: The plan.
        folder: Its folder.
    """
    place = PlanFolder(folder)
    place.check(plan)
    jobs = check_jobs(make_jobs(plan), plan.protocol)
    return _finish(plan, jobs, place, {}, None)


def _announce(
    jobs: Sequence[Job],
    place: PlanFolder,
    processes: int,
    estimate: bool,
    keep: bool,
) -> float | None:
    """Says how many runs there are and about how long they will take."""
    runs = {job.run: job for job in jobs}
    left = [
        job
        for job in runs.values()
        if not RunFolder(place.path / "runs" / job.run).finished
    ]
    logger.info(
        "%d runs, %d of them finished, %d to go.",
        len(runs),
        len(runs) - len(left),
        len(left),
    )
    if not left or not estimate:
        return None
    seconds = estimate_seconds(left, place.estimate if keep else None)
    logger.info(
        "About %s one after the other%s, measured on a few steps.",
        duration(seconds),
        f"; less with {processes} at once, as far as the cores go"
        if processes > 1
        else "",
    )
    return seconds


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
                collect(jobs, place.path, runner.failed), place.results
            )

        runner = Runner(place.path, processes, on_done)
        runner.run(jobs)
    return runner.failed


def _finish(
    plan: PlanConfig,
    jobs: Sequence[Job],
    place: PlanFolder,
    failed: Mapping[str, str],
    seconds: float | None,
) -> Comparison:
    records = collect(jobs, place.path, failed)
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
    )
    return Comparison(place.path, records, report, seconds)


def _search(
    plan: PlanConfig, place: PlanFolder, processes: int
) -> dict[str, dict[str, Any]]:
    """The best settings of every arm on every source, on validation classes."""
    from keras_dml.protocols.search import run_search

    assert plan.search is not None
    protocol = plan.protocol
    if protocol.kind != "fixed_validation":
        protocol = ProtocolConfig()
    found: dict[str, dict[str, Any]] = {}
    for source in plan.sources:
        for arm in arms(plan):

            def make_config(changes, number, source=source, arm=arm):
                config = with_changes(plan, source, arm, changes)
                return under_protocol(config, protocol)

            name = f"{Path(source).stem}-{arm.name}".replace(":", "_")
            result = run_search(
                plan.search,
                make_config,
                place.path / "search" / name,
                processes=processes,
            )
            found[f"{source}/{arm.name}"] = dict(result.best.parameters)
    return found


def duration(seconds: float) -> str:
    """A length of time in words.

    Example:

    >>> duration(100), duration(5400)
    ('1 min 40 s', '1 h 30 min')
    """
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60} min"
