"""Announces the runs of a plan and estimates how long they take."""

import dataclasses
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from keras_dml.comparison.budget import lengths_of_phases, within_budget
from keras_dml.comparison.jobs import Job
from keras_dml.comparison.pace import Paces, RunPace
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.comparison.records import collect, counts_in_words
from keras_dml.comparison.tunings import PlannedTuning
from keras_dml.comparison.work import Work
from keras_dml.config import Explanation, RunConfig
from keras_dml.config.plan_sections import BudgetConfig
from keras_dml.console import logger, track
from keras_dml.errors import RunError
from keras_dml.run.history import read_history
from keras_dml.run.pace import main_phase
from keras_dml.run.processes import TrainingProcess
from keras_dml.run.supervise import supervise
from keras_dml.wording import counted, roughly

EPOCHS = 4
STEPS = 5
# Above this factor, measuring first is worth its minutes.
_UNSURE = 2.0


@dataclasses.dataclass(frozen=True)
class Estimate:
    """How long runs take one after the other.

    Args:
        seconds: The likely seconds.
        low: Seconds that they take at least, as far as is known.
        high: Seconds that they take at most, as far as is known.
        basis: What the least certain part comes from, in words.
    """

    seconds: float
    low: float
    high: float
    basis: str

    def sentence(self, processes: int = 1) -> str:
        """Says how long the runs take and how sure that is.

        Args:
            processes: How many run at once. Defaults to `1`.
        """
        text = f"About {roughly(self.seconds)} in all"
        if processes > 1:
            text += f" (less with {processes} at once, as far as the cores go)"
        text += f", likely between {roughly(self.low)} and "
        text += f"{roughly(self.high)}: {self.basis}."
        if self.high > _UNSURE * self.seconds:
            text += " `measure=True` times a few steps first, to be surer."
        return text


def estimate_runs(jobs: Iterable[Job], paces: Paces) -> Estimate:
    """Estimates how long jobs take, from what is known of their pace.

    Args:
        jobs: Runs that are not finished, from `check_jobs`.
        paces: The known paces.
    """
    seconds = low = high = worst = 0.0
    basis = ""
    for job in jobs:
        known = paces.of(_work(job))
        own = known.pace.seconds(_work(job))
        seconds += own
        low += own / known.factor
        high += own * known.factor
        if known.factor > worst:
            worst, basis = known.factor, known.basis
    return Estimate(seconds, low, high, basis)


def measure_paces(jobs: Iterable[Job], paces: Paces) -> None:
    """Trains a few steps of each kind of run whose pace is not known yet.

    Args:
        jobs: Runs that are not finished, from `check_jobs`.
        paces: The known paces; the function adds those that it measures.

    Raises:
        RunError: If such a trial fails: the plan would fail in the same way.
    """
    kinds = {_work(job).kind: job for job in jobs}
    unknown = [job for job in kinds.values() if not paces.measured(_work(job))]
    for job in track(unknown, "measuring the pace", len(unknown)):
        paces.learn(_work(job), measure_pace(job.config, _work(job)))


def measure_pace(config: RunConfig, work: Work) -> RunPace:
    """Measures the pace of a run: trains a few steps and evaluates once.

    Args:
        config: The configuration.
        work: What the whole run computes.
    """
    stage = config.stages[0]
    phase = main_phase(stage.phases, lengths_of_phases(stage))
    short = config.changed(
        stages=[stage.changed(phases=[phase])],
        evaluation={"every": EPOCHS},
    )
    budget = BudgetConfig(epochs=EPOCHS, steps_per_epoch=STEPS)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "trial.log")
        started = time.perf_counter()
        trial = TrainingProcess(
            within_budget(Explanation(short, {}), budget),
            Path(folder, "trial"),
            log,
        )
        supervise(iter([trial, None]).__next__, lambda _: None)
        seconds = time.perf_counter() - started
        if trial.exit_code:
            raise RunError(
                f"A trial of {config.recipe} on {config.data.source} failed: "
                f"{trial.reason()}"
            )
        epochs = read_history(trial.folder.history).columns["seconds"].tolist()
    # The first epoch traces the graph, the last one also validates.
    step = min(epochs[1:-1]) / STEPS
    start = seconds - sum(epochs[1:]) - step * work.tested
    return RunPace(max(0.0, start), step)


def announce(
    jobs: Sequence[Job], tunings: Sequence[PlannedTuning], place: PlanFolder
) -> list[Job]:
    """Logs how many trainings there are, and returns those that are left.

    Args:
        jobs: The runs of a plan.
        tunings: Its tunings.
        place: Its folder.

    Returns:
        The jobs that are left: the trials of tunings, then the runs. Each
        trial counts in full, although some are stopped early.
    """
    runs = {job.run: job for job in jobs}
    left = [job for job in runs.values() if not place.run(job).finished]
    if tunings:
        total = sum(planned.section.budget for planned in tunings)
        trials = sum(planned.left for planned in tunings)
        folds = tunings[0].folds
        logger.info(
            "%s to find settings first%s: %s done, %s to do.",
            counted(total, "trial"),
            f" (each on {folds} folds)" if folds > 1 else "",
            f"{total - trials:,}",
            f"{trials:,}",
        )
    trainings = [
        planned.job
        for planned in tunings
        for _ in range(planned.left * planned.folds)
    ]
    trainings += left
    records = collect([job.record for job in runs.values()], place.path)
    idle = "" if trainings else " Nothing is left to train."
    logger.info("%s.%s", counts_in_words(records), idle)
    return trainings


def _work(job: Job) -> Work:
    assert job.work is not None, "only checked jobs know their work"
    return job.work
