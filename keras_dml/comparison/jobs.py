"""Makes the runs of a plan and names them."""

import dataclasses
import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from keras_dml.comparison.plans import arms, backbones
from keras_dml.comparison.protocols import get_protocol, within_budget
from keras_dml.comparison.records import RunRecord
from keras_dml.config import RunConfig, resolve
from keras_dml.config.plan_sections import (
    ArmConfig,
    PlanConfig,
)
from keras_dml.errors import UsageError
from keras_dml.wording import source_title

# The key of a tuning: source, backbone and arm.
Tuned = tuple[str, str | None, str]


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a plan.

    Args:
        config: The configuration. Equal configurations share a run.
        record: The record of the run, without an outcome.
        steps: Total number of training steps; set once the data are listed.
        validations: How often the run measures its validation classes.
    """

    config: RunConfig
    record: RunRecord
    steps: int = 0
    validations: int = 0

    @property
    def run(self) -> str:
        """Name of the run folder."""
        return self.record.run


def make_jobs(
    plan: PlanConfig,
    changes: Mapping[Tuned, Mapping[str, Any]] | None = None,
) -> list[Job]:
    """Returns all runs of a plan, in the order in which they are trained.

    Every arm is trained with the first seed before any arm is repeated.

    Args:
        plan: The plan.
        changes: Settings that a tuning has found, by source, backbone and
            arm. Defaults to `None`.

    Raises:
        UsageError: If the plan has mistakes; names all of them.

    Example:

    >>> len(make_jobs(load_plan("demo")))
    8
    """
    jobs: list[Job] = []
    mistakes: dict[str, None] = {}
    runs: dict[str, str] = {}
    found = changes or {}
    for seed, source in itertools.product(plan.seeds, plan.sources):
        for arm in arms(plan):
            for config_or_mistake in _configs(plan, source, arm, seed, found):
                if isinstance(config_or_mistake, str):
                    mistakes[config_or_mistake] = None
                    continue
                config, factors = config_or_mistake
                for fold in get_protocol(plan.protocol).folds:
                    job = make_job(plan, arm, config, factors, fold)
                    run = own_name(job.run, job.config, runs)
                    record = dataclasses.replace(job.record, run=run)
                    jobs.append(dataclasses.replace(job, record=record))
    mistakes |= dict.fromkeys(_unknown_arms(plan, jobs) if jobs else ())
    if mistakes:
        raise UsageError("\n".join(mistakes))
    return jobs


def count_trials(plan: PlanConfig) -> int:
    """Counts the trials of a plan: each arm, network and data set is tuned."""
    if plan.tuning is None:
        return 0
    budgets = [plan.tuning.with_space(arm.space).budget for arm in arms(plan)]
    return sum(budgets) * sum(
        len(backbones(plan, source)) for source in plan.sources
    )


def with_changes(
    plan: PlanConfig,
    source: str,
    arm: ArmConfig,
    settings: Mapping[str, Any],
    backbone: str | None = None,
) -> RunConfig:
    """Returns the run of a trial: an arm with additional settings.

    It takes the plan's first embedding size and seed, and the first value of
    each setting in the plan's grid.

    Raises:
        UsageError: If a key or a value is wrong.
    """
    model = {"backbone": backbone, "dim": plan.dims[0] if plan.dims else None}
    first = {key: values[0] for key, values in plan.grid.items()}
    return _resolved(
        plan, source, arm, model, plan.seeds[0], {**first, **settings}
    )


def _configs(
    plan: PlanConfig,
    source: str,
    arm: ArmConfig,
    seed: int,
    found: Mapping[Tuned, Mapping[str, Any]],
) -> Iterator[tuple[RunConfig, dict[str, Any]] | str]:
    """Yields each configuration of an arm with its factors, or a mistake."""
    dims: list[int | None] = [*plan.dims] or [None]
    for backbone, dim, values in itertools.product(
        backbones(plan, source),
        dims,
        list(itertools.product(*plan.grid.values())),
    ):
        factors = dict(zip(plan.grid, values, strict=True))
        model = {"backbone": backbone, "dim": dim}
        settings = {**factors, **found.get((source, backbone, arm.name), {})}
        try:
            yield (
                _resolved(plan, source, arm, model, seed, settings),
                factors,
            )
        except UsageError as error:
            yield f"{source}, {arm.name}: {error}"


def _resolved(
    plan: PlanConfig,
    source: str,
    arm: ArmConfig,
    model: Mapping[str, Any],
    seed: int,
    settings: Mapping[str, Any],
) -> RunConfig:
    assert arm.recipe is not None
    network = model.get("backbone")
    cases = [case for case in plan.cases if case.covers(source, network)]
    weights = [case.weights for case in cases if case.weights is not None]
    flags = {**model, "weights": weights[-1] if weights else plan.weights}
    overrides = {**plan.set}
    for part in (*(case.set for case in cases), arm.set, settings):
        overrides |= part
    return within_budget(
        resolve(
            arm.recipe,
            source,
            flags={
                "seed": seed,
                "strategy": "none",
                "data": {"data_dir": plan.data_dir},
                "model": {
                    key: value
                    for key, value in flags.items()
                    if value is not None
                },
            },
            overrides=[
                f"{key}={json.dumps(value)}" for key, value in overrides.items()
            ],
        ),
        plan.budget,
    )


def make_job(
    plan: PlanConfig,
    arm: ArmConfig,
    config: RunConfig,
    factors: Mapping[str, Any],
    fold: int | None,
) -> Job:
    """Makes one run, named after the settings that vary in a plan."""
    label = label_of(arm.name, factors, alone=len(arms(plan)) == 1)
    return Job(
        get_protocol(plan.protocol).applied(config, fold),
        RunRecord(
            run=run_name(config, label, fold),
            source=config.data.source,
            backbone=config.model.backbone,
            weights=config.model.weights,
            dim=config.model.dim,
            arm=label,
            line=arm.name,
            recipe=config.recipe,
            factors=dict(factors),
            seed=config.seed,
            fold=fold,
        ),
    )


def _unknown_arms(plan: PlanConfig, jobs: list[Job]) -> list[str]:
    known = {job.record.arm for job in jobs} | {arm.name for arm in arms(plan)}
    named = [
        (f"finding {finding.claim!r}", arm)
        for finding in plan.findings
        for arm in (*finding.better, *finding.than)
    ]
    named += [
        (f"paper value of {table.where!r}", arm)
        for table in plan.paper_values
        for arm in table.values
    ]
    return [
        f"The {place} names the arm {arm!r}, which the plan does not have. "
        f"Its arms: {sorted(known)}."
        for place, arm in named
        if arm not in known
    ]


def label_of(arm: str, factors: Mapping[str, Any], *, alone: bool) -> str:
    """Returns the name of a table row: the arm and its settings.

    The settings suffice if the arm is `alone`, the only one of the plan.
    >>> label_of("ln", {"model.scale": 4}, alone=False)
    'ln, scale 4'
    """
    parts = [f"{short_name(key)} {value}" for key, value in factors.items()]
    return ", ".join(parts if parts and alone else [arm, *parts])


def run_name(config: RunConfig, label: str, fold: int | None) -> str:
    """Returns the folder name of a run; it may not be unique."""
    parts = [
        source_title(config.data.source).removesuffix(".csv"),
        config.model.backbone,
        f"{config.model.dim}d",
        label,
        f"seed{config.seed}",
        *([] if fold is None else [f"fold{fold}"]),
    ]
    return "-".join(_slug(part) for part in parts)


def own_name(name: str, config: RunConfig, runs: dict[str, str]) -> str:
    """Returns a unique run name, the same for equal configurations.

    Args:
        name: The preferred name.
        config: The configuration of the run.
        runs: Dict from configurations to names. The function adds this run.
    """
    key = config.model_dump_json()
    if key not in runs:
        if name in runs.values():
            name += f"_{hashlib.sha256(key.encode()).hexdigest()[:6]}"
        runs[key] = name
    return runs[key]


def short_name(key: str) -> str:
    """Shortens a dotted key for a table: `model.scale` becomes `scale`.

    Example:

    >>> short_name("optimizer.proxies.lr")
    'proxies lr'
    """
    parts = [
        part
        for part in key.split(".")
        if not part.isdigit() and part != "arguments"
    ]
    if parts[0] == "optimizer" or len(parts) > 2:
        return " ".join(parts[-2:])
    return parts[-1]


def _slug(text: str) -> str:
    """Turns text into a part of a folder name."""
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_")
