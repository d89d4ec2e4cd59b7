"""The tunings of a plan: one for each arm, network and data set."""

import csv
import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_dml.comparison.check import check_jobs
from keras_dml.comparison.jobs import (
    Job,
    Tuned,
    make_job,
    with_changes,
)
from keras_dml.comparison.plans import arms, backbones
from keras_dml.comparison.protocols import tuning_protocol
from keras_dml.config.plan_sections import (
    ArmConfig,
    PlanConfig,
)
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.console import logger
from keras_dml.errors import UsageError
from keras_dml.tuning.folder import TuningFolder
from keras_dml.tuning.space import MakeConfig, TuningSpace
from keras_dml.tuning.study import import_optuna
from keras_dml.tuning.trials import ArmTuning
from keras_dml.wording import slug, source_title

_ENDED = ("complete", "pruned")


@dataclasses.dataclass(frozen=True)
class PlannedTuning:
    """The tuning of one arm on one data set with one network.

    Args:
        source: The data.
        backbone: The network; `None` is the recipe's network.
        arm: Name of the arm.
        section: The `tuning` section with the settings to try.
        make_config: Makes the run of given settings, see `tune`.
        job: A run with the first settings; every trial is as long.
        folds: How many folds a trial is trained on.
        folder: The folder of the tuning.
    """

    source: str
    backbone: str | None
    arm: str
    section: TuningConfig
    make_config: MakeConfig
    job: Job
    folds: int = 1
    folder: Path = Path()

    @property
    def left(self) -> int:
        """The number of trials that have not ended."""
        trials = TuningFolder(self.folder).trials
        if not trials.is_file():
            return self.section.budget
        with open(trials, encoding="utf-8", newline="") as file:
            states = [row["state"] for row in csv.DictReader(file)]
        ended = sum(state in _ENDED for state in states)
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
    tunings: list[PlannedTuning] = []
    mistakes: dict[str, None] = {}
    for source in plan.sources:
        for backbone in backbones(plan, source):
            for arm in arms(plan):
                try:
                    tunings.append(_planned(plan, source, backbone, arm))
                except UsageError as error:
                    mistakes[f"{source}, {arm.name}: {error}"] = None
    if mistakes:
        raise UsageError("\n".join(mistakes))
    folders = _folders(tunings, Path(folder) / "tuning")
    return [
        dataclasses.replace(planned, folder=own)
        for planned, own in zip(tunings, folders, strict=True)
    ]


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
        [planned.job for planned in tunings],
        tuning_protocol(plan.protocol).section,
    )
    return [
        dataclasses.replace(planned, job=job)
        for planned, job in zip(tunings, jobs, strict=True)
    ]


def run_tunings(
    tunings: Sequence[PlannedTuning], processes: int = 1
) -> list[ArmTuning]:
    """Runs the remaining trials of the tunings.

    Args:
        tunings: The tunings of a plan.
        processes: Integer, trainings at once. Defaults to `1`.

    Raises:
        UsageError, RunError, PreemptedError: See `tune`.
    """
    from keras_dml.tuning import loop

    found = []
    for number, planned in enumerate(tunings):
        logger.info(
            "Tuning %d of %d: %s", number + 1, len(tunings), planned.folder.name
        )
        result = loop.tune(
            planned.section,
            planned.make_config,
            planned.folder,
            processes=processes,
            folds=planned.folds,
            # No retry after the end: runs already use the settings found.
            retry=not TuningFolder(planned.folder).best.is_file(),
        )
        found.append(
            ArmTuning(planned.source, planned.backbone, planned.arm, result)
        )
    return found


def best_settings(
    found: Sequence[ArmTuning],
) -> dict[Tuned, dict[str, Any]]:
    """Returns the best settings of each tuning, as `make_jobs` takes them."""
    return {
        (one.source, one.backbone, one.arm): dict(one.result.best.parameters)
        for one in found
    }


def _planned(
    plan: PlanConfig,
    source: str,
    backbone: str | None,
    arm: ArmConfig,
) -> PlannedTuning:
    assert plan.tuning is not None
    protocol = tuning_protocol(plan.protocol)
    folds = protocol.folds
    fold = folds[0]

    def make_config(changes, number):
        config = with_changes(plan, source, arm, changes, backbone)
        return protocol.applied(config, fold)

    section = plan.tuning.with_space(arm.space)
    reference = TuningSpace(section).check(make_config)
    judged = plan.model_copy(update={"protocol": protocol.section})
    job = make_job(judged, arm, reference, {}, fold)
    return PlannedTuning(
        source, backbone, arm.name, section, make_config, job, len(folds)
    )


def _folders(tunings: Sequence[PlannedTuning], parent: Path) -> list[Path]:
    """Returns a folder for each tuning; adds a number to repeated names."""
    folders, taken = [], Counter[str]()
    for planned in tunings:
        parts = [source_title(planned.source), planned.backbone, planned.arm]
        name = slug(*(part for part in parts if part))
        taken[name] += 1
        number = f"--{taken[name]}" if taken[name] > 1 else ""
        folders.append(parent / f"{name}{number}")
    return folders
