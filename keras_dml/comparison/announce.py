"""What a plan is about to do, and for how long."""

from collections.abc import Sequence
from pathlib import Path

from keras_dml.comparison.estimate import estimate_seconds
from keras_dml.comparison.jobs import Job
from keras_dml.comparison.plan_searches import PlanSearch
from keras_dml.console import logger
from keras_dml.run.folder import RunFolder
from keras_dml.wording import counted, duration


def announce(
    jobs: Sequence[Job],
    searches: Sequence[PlanSearch],
    folder: Path,
    processes: int,
    estimate: bool,
    cache: Path | None = None,
) -> float | None:
    """Says how many trainings there are and about how long they will take.

    Args:
        jobs: The runs of a plan.
        searches: Its searches.
        folder: Its folder.
        processes: How many train at once.
        estimate: Whether to measure the time, on a few steps.
        cache: File that keeps what was measured. Defaults to `None`.

    Returns:
        Seconds, one training after the other, if they were measured. Trials
        of a search count in full, though some are stopped early.
    """
    runs = {job.run: job for job in jobs}
    left = [
        job
        for job in runs.values()
        if not RunFolder(folder / "runs" / job.run).finished
    ]
    trials = sum(search.left for search in searches)
    if searches:
        total = sum(search.section.budget for search in searches)
        folds = searches[0].folds
        logger.info(
            "%s to find settings first%s, %d of them ended, %d to go.",
            counted(total, "trial"),
            f" (each on {folds} folds)" if folds > 1 else "",
            total - trials,
            trials,
        )
    logger.info(
        "%s, %d of them finished, %d to go.",
        counted(len(runs), "run"),
        len(runs) - len(left),
        len(left),
    )
    if not (left or trials) or not estimate:
        return None
    trainings = [
        search.job
        for search in searches
        for _ in range(search.left * search.folds)
    ]
    seconds = estimate_seconds([*trainings, *left], cache)
    logger.info(
        "About %s one after the other%s, measured on a few steps.",
        duration(seconds),
        f"; less with {processes} at once, as far as the cores go"
        if processes > 1
        else "",
    )
    return seconds
