"""Announces the runs of a plan and estimates how long they take."""

import dataclasses
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from keras_dml.comparison.jobs import Job
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.comparison.protocols import within_budget
from keras_dml.comparison.tunings import PlannedTuning
from keras_dml.config import RunConfig
from keras_dml.config.plan_sections import BudgetConfig
from keras_dml.console import logger
from keras_dml.errors import RunError
from keras_dml.files import read_json, write_json
from keras_dml.run.history import read_history
from keras_dml.run.processes import TrainingProcess, supervise
from keras_dml.wording import counted, duration

EPOCHS = 4
STEPS = 5


@dataclasses.dataclass(frozen=True)
class Pace:
    """The speed of one kind of run.

    Args:
        fixed: Seconds before and after training: start, tracing, measuring.
        step: Seconds of a training step.
        validation: Seconds of measuring the validation classes once.
    """

    fixed: float
    step: float
    validation: float

    def seconds(self, steps: int, validations: int) -> float:
        """Returns the seconds of a run from its steps and validations."""
        training = steps * self.step
        return self.fixed + training + validations * self.validation


def estimate_seconds(
    jobs: Sequence[Job], cache: Path | None = None, processes: int = 1
) -> float:
    """Returns the seconds that jobs take one after the other, and logs them.

    Trains the first of all jobs with the same data, network and batch for a
    few steps, in a temporary folder.

    Args:
        jobs: Runs that are not finished.
        cache: File that keeps the measurements. Defaults to `None`.
        processes: How many jobs are to run at once, for the log. Defaults to
            `1`.

    Raises:
        RunError: If such a trial fails: the plan would fail in the same way.
    """
    stored = read_json(cache) if cache else None
    paces = {kind: Pace(**values) for kind, values in (stored or {}).items()}
    total = 0.0
    for job in jobs:
        kind = _kind(job.config)
        if kind not in paces:
            paces[kind] = measure_pace(job.config)
            logger.info("Measured on a few steps: %s", paces[kind])
            if cache is not None:
                values = {k: dataclasses.asdict(p) for k, p in paces.items()}
                write_json(cache, values)
        total += paces[kind].seconds(job.steps, job.validations)
    at_once = f"; less with {processes} at once, as far as the cores go"
    logger.info(
        "About %s one after the other%s, measured on a few steps.",
        duration(total),
        at_once if processes > 1 else "",
    )
    return total


def measure_pace(config: RunConfig) -> Pace:
    """Measures the pace of a run: trains a few steps and evaluates once."""
    stage = config.stages[0]
    short = config.changed(
        stages=[stage.changed(phases=stage.phases[:1])],
        evaluation={"every": EPOCHS},
    )
    budget = BudgetConfig(epochs=EPOCHS, steps_per_epoch=STEPS)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "trial.log")
        started = time.perf_counter()
        trial = TrainingProcess(
            within_budget(short, budget), Path(folder, "trial"), log
        )
        supervise(iter([trial, None]).__next__, lambda _: None)
        seconds = time.perf_counter() - started
        if trial.exit_code:
            raise RunError(
                f"A trial of {config.recipe} on {config.data.source} failed: "
                f"{trial.reason()}"
            )
        history = read_history(trial.folder.history)
        epochs = history.columns["seconds"].tolist()
    step = min(epochs[1:-1])
    return Pace(
        fixed=seconds - sum(epochs[1:]),
        step=step / STEPS,
        validation=max(0.0, epochs[-1] - step),
    )


def _kind(config: RunConfig) -> str:
    """Returns the key that runs of the same pace share."""
    parts = {
        "source": config.data.source,
        "image_size": config.data.image_size,
        "max_classes": config.data.max_classes,
        "backbone": config.model.backbone,
        "batch_size": config.sampling.batch_size,
        "dim": config.model.dim,
    }
    return json.dumps(parts)


def announce(
    jobs: Sequence[Job],
    tunings: Sequence[PlannedTuning],
    place: PlanFolder,
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
    trainings = [
        planned.job
        for planned in tunings
        for _ in range(planned.left * planned.folds)
    ]
    return trainings + left
