"""The tunings of a plan: one for each arm, network and data set."""

import csv
import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

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
from keras_dml.config.yaml_files import read_yaml
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
    def ended(self) -> bool:
        """Whether the settings are found."""
        return TuningFolder(self.folder).best.is_file()

    @property
    def left(self) -> int:
        """The number of trials that have not ended."""
        folder = TuningFolder(self.folder)
        if not folder.trials.is_file():
            return self.section.budget
        # Failed trials are tried again only until the settings are found.
        ends = (*_ENDED, "failed") if self.ended else _ENDED
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
        The tunings, with the numbers of steps of their trials, which hold the
        same images out as the runs.

    Raises:
        UsageError: If a tuning is not valid. Names every mistake once.
    """
    jobs = check_jobs(
        [planned.job for planned in tunings], tuning_protocol(plan.protocol)
    )
    return [
        _judged_as(planned, job)
        for planned, job in zip(tunings, jobs, strict=True)
    ]


def settings_found(
    tunings: Iterable[PlannedTuning],
) -> dict[Tuned, Mapping[str, Any]]:
    """Returns the settings that earlier commands have found, see `make_jobs`.

    Raises:
        UsageError: If a file of settings cannot be read.
    """
    return {
        planned.tuned: read_yaml(TuningFolder(planned.folder).best)
        for planned in tunings
        if planned.ended
    }


def awaiting(
    jobs: Iterable[Job], tunings: Iterable[PlannedTuning], plan: PlanConfig
) -> list[Job]:
    """Returns the jobs; those whose settings are not found have other names.

    Only its settings say which run of the folder a job is. Arms whose settings
    are equal until they are found are not the same run.

    Args:
        jobs: The runs of a plan.
        tunings: Its tunings.
        plan: The plan.
    """
    waiting = {
        _key(planned.job, planned.tuned.arm)
        for planned in tunings
        if not planned.ended
    }
    tuned_as = {arm.name: arm.tuned_as or arm.name for arm in arms(plan)}

    def named(job: Job) -> Job:
        record, arm = job.record, tuned_as[job.record.line]
        if _key(job, arm) not in waiting:
            return job
        run = f"{record.run} (tuned as {arm})"
        return dataclasses.replace(
            job, record=dataclasses.replace(record, run=run)
        )

    return [named(job) for job in jobs]


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
            retry=not planned.ended,
        )
    return found


def _judged_as(planned: PlannedTuning, job: Job) -> PlannedTuning:
    """Returns the tuning with the checked job, whose validation trials share.

    Only the data say whether a protocol lets images validate.
    """
    images = job.config.data.validation_images
    if images == planned.job.config.data.validation_images:
        return dataclasses.replace(planned, job=job)

    def make_config(changes, number):
        config = planned.make_config(changes, number)
        return config.changed(data={"validation_images": images})

    return dataclasses.replace(planned, job=job, make_config=make_config)


def _key(job: Job, arm: str) -> tuple[str, str, str]:
    return job.record.source, job.record.backbone, arm


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
