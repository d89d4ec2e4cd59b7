"""How long a plan will take, measured on a few steps before it starts."""

import csv
import dataclasses
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_dml.comparison.jobs import Job
from keras_dml.comparison.launch import start_run
from keras_dml.comparison.protocols import within_budget
from keras_dml.comparison.runner import last_words
from keras_dml.config import RunConfig
from keras_dml.config.plan_sections import BudgetConfig
from keras_dml.console import logger
from keras_dml.errors import RunError
from keras_dml.files import write_text
from keras_dml.run.folder import RunFolder

EPOCHS = 4
STEPS = 5


@dataclasses.dataclass(frozen=True)
class Pace:
    """How fast one kind of run is.

    Args:
        fixed: Seconds before and after training: start, tracing, measuring.
        step: Seconds of a training step.
        validation: Seconds of measuring the validation classes once.
    """

    fixed: float
    step: float
    validation: float

    def seconds(self, steps: int, validations: int) -> float:
        """Of a run of so many steps."""
        training = steps * self.step
        return self.fixed + training + validations * self.validation


def estimate_seconds(jobs: Sequence[Job], cache: Path | None = None) -> float:
    """Seconds that jobs take one after the other.

    Of all jobs with the same data, network and batch the first is tried, for
    a few steps, in a folder that is thrown away.

    Args:
        jobs: Runs that are not finished.
        cache: File that keeps what was measured. Defaults to `None`.

    Raises:
        RunError: If a trial fails: the plan would fail likewise.
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
    """Trains a few steps and measures everything once, as the run would."""
    stage = config.stages[0]
    short = within_budget(
        config.model_copy(
            update={
                "stages": [
                    stage.model_copy(update={"phases": stage.phases[:1]})
                ],
                "evaluation": config.evaluation.model_copy(
                    update={"every": EPOCHS}
                ),
            }
        ),
        BudgetConfig(epochs=EPOCHS, steps_per_epoch=STEPS),
    )
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "trial.log")
        started = time.perf_counter()
        with start_run(short, Path(folder, "trial"), log) as process:
            code = process.wait()
        seconds = time.perf_counter() - started
        if code:
            raise RunError(
                f"A trial of {config.recipe} on {config.data.source} failed: "
                f"{last_words(log, code)}"
            )
        history = RunFolder(Path(folder, "trial")).history
        with open(history, encoding="utf-8") as file:
            epochs = [float(row["seconds"]) for row in csv.DictReader(file)]
    step = min(epochs[1:-1])
    return Pace(
        fixed=seconds - sum(epochs[1:]),
        step=step / STEPS,
        validation=max(0.0, epochs[-1] - step),
    )


def _kind(config: RunConfig) -> str:
    """What runs of the same pace have in common."""
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
        write_text(cache, json.dumps(values, indent=2) + "\n")
