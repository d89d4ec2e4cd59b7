"""The tunings of a plan: one for each arm, network and data set."""

import csv
import dataclasses
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from keras_dml.comparison.check import check_jobs
from keras_dml.comparison.jobs import (
    Job,
    Setup,
    Tuned,
    configured,
    first_setup,
    make_job,
)
from keras_dml.comparison.plans import arms, backbones
from keras_dml.comparison.protocols import get_protocol, tuning_protocol
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.console import logger
from keras_dml.errors import Mistakes
from keras_dml.tuning import loop
from keras_dml.tuning.folder import TuningFolder
from keras_dml.tuning.space import MakeConfig, TuningSpace
from keras_dml.tuning.study import import_optuna
from keras_dml.tuning.trials import TuningResult
from keras_dml.wording import slug, source_title

_ENDED = ("complete", "pruned")


@dataclasses.dataclass(frozen=True)
class PlannedTuning:
    """The tuning of one arm on one data set with one network.

    Args:
        tuned: The data, the network and the arm.
        section: The `tuning` section with the settings to try.
        make_config: Makes the run of given settings, see `tune`.
        job: A run with the first settings; every trial is as long.
        folds: How many folds a trial is trained on.
        folder: The folder of the tuning.
    """

    tuned: Tuned
    section: TuningConfig
    make_config: MakeConfig
    job: Job
    folds: int
    folder: Path

    @property
    def left(self) -> int:
        """The number of trials that have not ended."""
        folder = TuningFolder(self.folder)
        if not folder.trials.is_file():
            return self.section.budget
        # Failed trials are tried again only until the settings are found.
        ends = (*_ENDED, "failed") if folder.best.is_file() else _ENDED
        with open(folder.trials, encoding="utf-8", newline="") as file:
            states = [row["state"] for row in csv.DictReader(file)]
        ended = sum(state in ends for state in states)
        return max(0, self.section.budget - ended)


def plan_tunings(plan: PlanConfig, folder: str | Path) -> list[PlannedTuning]:
    """Returns the tunings of a plan, after it has checked their settings.

    Args:
        plan: A plan, with `tuning` or without.
        folder: The plan's folder; nothing is written.

    Raises:
        UsageError: If tunings have mistakes (names all of them), or if Optuna
            is not installed.
    """
    if plan.tuning is None:
        return []
    import_optuna()
    plan = plan.changed(protocol=tuning_protocol(plan.protocol))
    tunings: list[PlannedTuning] = []
    mistakes = Mistakes()
    taken = Counter[str]()
    tuned = [arm for arm in arms(plan) if arm.tuned_as is None]
    for source in plan.sources:
        for backbone, arm in product(backbones(plan, source), tuned):
            parts = [source_title(source), backbone, arm.name]
            name = slug(*filter(None, parts))
            taken[name] += 1
            number = f"--{taken[name]}" if taken[name] > 1 else ""
            own = Path(folder, "tuning", f"{name}{number}")
            with mistakes.collected(f"{source}, {arm.name}: "):
                setup = first_setup(plan, source, arm, backbone)
                tunings.append(_planned(plan, setup, own))
    mistakes.check()
    return tunings


def check_tunings(
    tunings: Sequence[PlannedTuning], plan: PlanConfig
) -> list[PlannedTuning]:
    """Checks the data, network, classes and batches of each tuning.

    Returns:
        The tunings, with the numbers of steps of their trials.

    Raises:
        UsageError: If a tuning is not valid. Names every mistake once.
    """
    jobs = check_jobs(
        [planned.job for planned in tunings], tuning_protocol(plan.protocol)
    )
    return [
        dataclasses.replace(planned, job=job)
        for planned, job in zip(tunings, jobs, strict=True)
    ]


def run_tunings(
    tunings: Sequence[PlannedTuning], processes: int = 1
) -> dict[Tuned, TuningResult]:
    """Runs the remaining trials of the tunings.

    Args:
        tunings: The tunings of a plan.
        processes: Integer, trainings at once. Defaults to `1`.

    Returns:
        Dict from the data, network and arm of each tuning to its result.

    Raises:
        UsageError, RunError, PreemptedError: See `tune`.
    """
    found = {}
    for number, planned in enumerate(tunings, start=1):
        logger.info(
            "Tuning %d of %d: %s", number, len(tunings), planned.folder.name
        )
        found[planned.tuned] = loop.tune(
            planned.section,
            planned.make_config,
            planned.folder,
            processes=processes,
            folds=planned.folds,
            # No retry after the end: runs already use the settings found.
            retry=not TuningFolder(planned.folder).best.is_file(),
        )
    return found


def _planned(plan: PlanConfig, setup: Setup, folder: Path) -> PlannedTuning:
    assert plan.tuning is not None
    protocol = get_protocol(plan.protocol)
    folds = protocol.folds

    def make_config(changes, number):
        return protocol.applied(configured(plan, setup, changes), folds[0])

    section = plan.tuning.with_space(setup.arm.space)
    reference = TuningSpace(section).check(make_config)
    job = make_job(plan, setup, reference, folds[0], {})
    return PlannedTuning(
        setup.tuned, section, make_config, job, len(folds), folder
    )
