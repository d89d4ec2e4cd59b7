"""The searches of a plan: one for each arm, network and data set."""

import csv
import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_dml.comparison.check import check_jobs
from keras_dml.comparison.jobs import (
    Job,
    Searched,
    arms,
    backbones,
    make_job,
    with_changes,
)
from keras_dml.comparison.protocols import fold_numbers, under_protocol
from keras_dml.config.plan_sections import (
    ArmConfig,
    PlanConfig,
    ProtocolConfig,
)
from keras_dml.config.tuning_section import TuningConfig
from keras_dml.console import logger
from keras_dml.errors import UsageError
from keras_dml.tuning.folder import TuningFolder
from keras_dml.tuning.result import ArmTuning
from keras_dml.tuning.space import MakeConfig, TuningSpace
from keras_dml.tuning.study import import_optuna
from keras_dml.wording import slug, source_title

_ENDED = ("complete", "pruned")


@dataclasses.dataclass(frozen=True)
class PlanSearch:
    """One search of a plan.

    Args:
        source: The data.
        backbone: The network; `None` is the recipe's own.
        arm: Name of the arm.
        section: What is tried.
        make_config: The run of some settings, see `run_search`.
        job: A run with the first settings: the trials are as long.
        folds: How many folds a trial is trained on.
        folder: Where the search goes.
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
        """How many trials have not ended."""
        trials = TuningFolder(self.folder).trials
        if not trials.is_file():
            return self.section.budget
        with open(trials, encoding="utf-8", newline="") as file:
            states = [row["state"] for row in csv.DictReader(file)]
        ended = sum(state in _ENDED for state in states)
        return max(0, self.section.budget - ended)


def plan_searches(plan: PlanConfig, folder: str | Path) -> list[PlanSearch]:
    """The searches of a plan, with settings that their runs take.

    Args:
        plan: A plan, with `search` or without.
        folder: The plan's folder; nothing is written.

    Raises:
        UsageError: Naming all mistakes of all searches, or if Optuna is not
            installed.
    """
    if plan.tuning is None:
        return []
    import_optuna()
    searches: list[PlanSearch] = []
    mistakes: dict[str, None] = {}
    for source in plan.sources:
        for backbone in backbones(plan, source):
            for arm in arms(plan):
                try:
                    searches.append(_search(plan, source, backbone, arm))
                except UsageError as error:
                    mistakes[f"{source}, {arm.name}: {error}"] = None
    if mistakes:
        raise UsageError("\n".join(mistakes))
    folders = _folders(searches, Path(folder) / "search")
    return [
        dataclasses.replace(search, folder=own)
        for search, own in zip(searches, folders, strict=True)
    ]


def check_searches(
    searches: Sequence[PlanSearch], plan: PlanConfig
) -> list[PlanSearch]:
    """Refuses searches whose data, network, classes or batches cannot be.

    Returns:
        The searches, with the numbers of steps of their trials.

    Raises:
        UsageError: Naming every mistake once.
    """
    jobs = check_jobs([search.job for search in searches], _protocol(plan))
    return [
        dataclasses.replace(search, job=job)
        for search, job in zip(searches, jobs, strict=True)
    ]


def run_searches(
    searches: Sequence[PlanSearch], processes: int = 1
) -> list[ArmTuning]:
    """Runs what is left of the searches.

    Args:
        searches: The searches of a plan.
        processes: Integer, trainings at once. Defaults to `1`.

    Raises:
        UsageError, RunError, PreemptedError: See `run_search`.
    """
    from keras_dml.tuning.run_search import run_search

    found = []
    for number, search in enumerate(searches):
        logger.info(
            "Search %d of %d: %s", number + 1, len(searches), search.folder.name
        )
        result = run_search(
            search.section,
            search.make_config,
            search.folder,
            processes=processes,
            folds=search.folds,
            # Once it has ended, runs have the settings that it found.
            retry=not TuningFolder(search.folder).best.is_file(),
        )
        found.append(
            ArmTuning(search.source, search.backbone, search.arm, result)
        )
    return found


def best_settings(
    found: Sequence[ArmTuning],
) -> dict[Searched, dict[str, Any]]:
    """The best settings of each search, as `make_jobs` takes them."""
    return {
        (one.source, one.backbone, one.arm): dict(one.result.best.parameters)
        for one in found
    }


def _search(
    plan: PlanConfig,
    source: str,
    backbone: str | None,
    arm: ArmConfig,
) -> PlanSearch:
    assert plan.tuning is not None
    protocol = _protocol(plan)
    folds = fold_numbers(protocol)
    fold = folds[0]

    def make_config(changes, number):
        config = with_changes(plan, source, arm, changes, backbone)
        return under_protocol(config, protocol, fold)

    section = plan.tuning.with_space(arm.space)
    reference = TuningSpace(section).check(make_config)
    judged = plan.model_copy(update={"protocol": protocol})
    job = make_job(judged, arm, reference, {}, fold)
    return PlanSearch(
        source, backbone, arm.name, section, make_config, job, len(folds)
    )


def _folders(searches: Sequence[PlanSearch], parent: Path) -> list[Path]:
    """A folder for each, numbered where names are alike."""
    folders, taken = [], Counter[str]()
    for search in searches:
        parts = [source_title(search.source), search.backbone, search.arm]
        name = slug(*(part for part in parts if part))
        taken[name] += 1
        number = f"--{taken[name]}" if taken[name] > 1 else ""
        folders.append(parent / f"{name}{number}")
    return folders


def _protocol(plan: PlanConfig) -> ProtocolConfig:
    """How the trials are judged: on classes held out of the training ones."""
    if plan.protocol.kind in ("fixed_validation", "cross_validation"):
        return plan.protocol
    return ProtocolConfig()
