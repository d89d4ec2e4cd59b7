"""Announces the runs of a plan and estimates how long they take."""

import dataclasses
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_dml.comparison.jobs import Job
from keras_dml.comparison.plan_folder import PlanFolder
from keras_dml.comparison.protocols import within_budget
from keras_dml.comparison.tunings import PlannedTuning
from keras_dml.config import RunConfig
from keras_dml.config.plan_sections import BudgetConfig
from keras_dml.console import logger
from keras_dml.errors import RunError
from keras_dml.files import write_json
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


def estimate_seconds(jobs: Sequence[Job], cache: Path | None = None) -> float:
    """Returns the seconds that jobs take one after the other.

    Trains the first of all jobs with the same data, network and batch for a
    few steps, in a temporary folder.

    Args:
        jobs: Runs that are not finished.
        cache: File that keeps the measurements. Defaults to `None`.

    Raises:
        RunError: If such a trial fails: the plan would fail in the same way.
    """
    paces = _load(cache)
    total = 0.0
    for job in jobs:
        kind = _kind(job.config)
        if kind not in paces:
            paces[kind] = measure_pace(job.config)
            _save(paces, cache)
        total += paces[kind].seconds(job.steps, job.validations)
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
    parts: Mapping[str, object] = {
        "source": config.data.source,
        "image_size": config.data.image_size,
        "max_classes": config.data.max_classes,
        "backbone": config.model.backbone,
        "batch_size": config.sampling.batch_size,
        "dim": config.model.dim,
    }
    return json.dumps(parts)


def _load(cache: Path | None) -> dict[str, Pace]:
    if cache is None or not cache.is_file():
        return {}
    stored = json.loads(cache.read_text(encoding="utf-8"))
    return {kind: Pace(**values) for kind, values in stored.items()}


def _save(paces: Mapping[str, Pace], cache: Path | None) -> None:
    logger.info("Measured on a few steps: %s", list(paces.values())[-1])
    if cache is not None:
        values = {k: dataclasses.asdict(pace) for k, pace in paces.items()}
        write_json(cache, values)


def announce(
    jobs: Sequence[Job],
    tunings: Sequence[PlannedTuning],
    place: PlanFolder,
    processes: int,
    estimate: bool,
    dry_run: bool,
) -> float | None:
    """Logs the number of trainings and about how long they will take.

    Args:
        jobs: The runs of a plan.
        tunings: Its tunings.
        place: Its folder.
        processes: How many runs train at once.
        estimate: Whether to estimate the time from a few training steps.
        dry_run: Whether to write nothing into the folder.

    Returns:
        The estimated seconds, one training after the other; `None` without an
        estimate. Each trial of a tuning counts in full, although some are
        stopped early.
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
    for planned in tunings:
        left += [planned.job] * (planned.left * planned.folds)
    if not left or not estimate:
        return None
    seconds = estimate_seconds(left, None if dry_run else place.estimate)
    at_once = f"; less with {processes} at once, as far as the cores go"
    logger.info(
        "About %s one after the other%s, measured on a few steps.",
        duration(seconds),
        at_once if processes > 1 else "",
    )
    return seconds
