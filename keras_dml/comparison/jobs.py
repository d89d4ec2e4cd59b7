"""Makes the runs of a plan and names them."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from keras_dml.comparison.budget import within_budget
from keras_dml.comparison.plan_names import check_names
from keras_dml.comparison.plans import arms, backbones
from keras_dml.comparison.protocols import get_protocol
from keras_dml.comparison.records import RunRecord
from keras_dml.comparison.run_names import label_of, own_name, run_name
from keras_dml.comparison.work import Work
from keras_dml.config import RunConfig, explain
from keras_dml.config.explanation import Explanation
from keras_dml.config.merging import flatten
from keras_dml.config.plan_sections import ArmConfig, PlanConfig
from keras_dml.errors import Mistakes, UsageError
from keras_dml.naming import shown


class Tuned(NamedTuple):
    """What a tuning finds settings for.

    Args:
        source: Name or path of the data.
        backbone: Name of the network; `None` is the recipe's network.
        arm: Name of the arm.
    """

    source: str
    backbone: str | None
    arm: str


@dataclasses.dataclass(frozen=True)
class Setup:
    """One combination of what a plan lists; folds share it.

    Args:
        source: Name or path of the data.
        backbone: Name of the network; `None` is the recipe's network.
        arm: The arm.
        dim: Integer, the length of an embedding; `None` is the recipe's.
        seed: Integer, the seed.
        factors: Dict from the keys of the plan's `grid` to one value each.
    """

    source: str
    backbone: str | None
    arm: ArmConfig
    dim: int | None
    seed: int
    factors: dict[str, Any]

    @property
    def tuned(self) -> Tuned:
        """The key of the tuning that finds settings for it."""
        arm = self.arm.tuned_as or self.arm.name
        return Tuned(self.source, self.backbone, arm)


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a plan.

    Args:
        config: The configuration. Equal configurations share a run.
        record: The record of the run, without an outcome.
        work: What the run computes; `None` until the data are listed.
        images: What it reads, in words. Defaults to an empty text.
    """

    config: RunConfig
    record: RunRecord
    work: Work | None = None
    images: str = ""

    @property
    def run(self) -> str:
        """Name of the run folder."""
        return self.record.run


def make_jobs(
    plan: PlanConfig, changes: Mapping[Tuned, Mapping[str, Any]] | None = None
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

    >>> from keras_dml.config.plans import load_plan
    >>> len(make_jobs(load_plan("demo")))
    8
    """
    jobs: list[Job] = []
    mistakes = Mistakes()
    runs: dict[str, str] = {}
    found = changes or {}
    for setup in _setups(plan):
        with mistakes.collected(f"{setup.source}, {setup.arm.name}: "):
            config = configured(plan, setup, found.get(setup.tuned, {}))
            jobs += [
                make_job(plan, setup, config, fold, runs)
                for fold in get_protocol(plan.protocol).folds
            ]
    with mistakes.collected():
        check_names(plan)
    mistakes.check()
    if not jobs:
        raise UsageError(
            "A plan must have at least one run. Received: `cases` that skip "
            "every network on every data set."
        )
    return jobs


def count_trials(plan: PlanConfig) -> int:
    """Counts the trials of a plan: each arm, network and data set is tuned."""
    if plan.tuning is None:
        return 0
    budgets = [
        plan.tuning.with_space(arm.space).budget
        for arm in arms(plan)
        if arm.tuned_as is None
    ]
    return sum(budgets) * sum(
        len(backbones(plan, source)) for source in plan.sources
    )


def first_setup(
    plan: PlanConfig, source: str, arm: ArmConfig, backbone: str | None = None
) -> Setup:
    """Returns what the trials of a tuning train.

    It has the plan's first embedding size and seed, and the first value of
    each setting in the plan's grid.
    """
    dim = plan.dims[0] if plan.dims else None
    factors = {key: values[0] for key, values in plan.grid.items()}
    return Setup(source, backbone, arm, dim, plan.seeds[0], factors)


def _setups(plan: PlanConfig) -> Iterator[Setup]:
    dims: list[int | None] = [*plan.dims] or [None]
    for seed, source, arm in itertools.product(
        plan.seeds, plan.sources, arms(plan)
    ):
        for backbone, dim, *values in itertools.product(
            backbones(plan, source), dims, *plan.grid.values()
        ):
            factors = dict(zip(plan.grid, values, strict=True))
            yield Setup(source, backbone, arm, dim, seed, factors)


def configured(
    plan: PlanConfig, setup: Setup, settings: Mapping[str, Any]
) -> RunConfig:
    """Returns the configuration of a setup, before the plan's protocol.

    Args:
        plan: The plan.
        setup: The setup.
        settings: Additional settings by dotted key; they win.

    Raises:
        UsageError: If a key or a value is wrong, or the plan's budget or
            protocol decides it.
    """
    assert setup.arm.recipe is not None
    cases = [
        case for case in plan.cases if case.covers(setup.source, setup.backbone)
    ]
    weights = [plan.weights]
    weights += [case.weights for case in cases if case.weights is not None]
    model = {
        "backbone": setup.backbone,
        "dim": setup.dim,
        "weights": weights[-1],
    }
    parts = [plan.set, *(case.set for case in cases)]
    overrides: dict[str, Any] = {}
    for part in (*parts, setup.arm.set, setup.factors, settings):
        for key, value in part.items():
            # Later ones come last, also if an earlier part has the same key: a
            # part in between may set its whole section.
            overrides.pop(key, None)
            overrides[key] = value
    explained = explain(
        setup.arm.recipe,
        setup.source,
        flags={
            "seed": setup.seed,
            "strategy": "none",
            "data": {"data_dir": plan.data_dir},
            "model": {k: v for k, v in model.items() if v is not None},
        },
        overrides=overrides,
    )
    config = within_budget(explained, plan.budget)
    _check_effect(explained, config, "the budget")
    under = get_protocol(plan.protocol).applied(config)
    _check_effect(explained, under, f"the protocol `{plan.protocol.kind}`")
    return config


def _check_effect(
    explained: Explanation, config: RunConfig, winner: str
) -> None:
    """Raises if what a plan sets itself is not what its runs train with."""
    values = flatten(config.model_dump(mode="json"))
    for key, value, origin in explained.settings:
        if origin == "override" and values.get(key, value) != value:
            raise UsageError(
                f"A plan must not set what {winner} decides. Received: "
                f"{key}={shown(value)}, which {winner} changes to "
                f"{shown(values[key])}. Leave it out, or change {winner}."
            )


def make_job(
    plan: PlanConfig,
    setup: Setup,
    config: RunConfig,
    fold: int | None,
    runs: dict[str, str],
) -> Job:
    """Makes one run, named after the settings that vary in a plan.

    Args:
        plan: The plan.
        setup: What the run trains.
        config: Its configuration, before the plan's protocol.
        fold: Number of the fold; `None` without cross-validation.
        runs: Dict from configurations to the names of their runs. The
            function adds this run.
    """
    alone = len(arms(plan)) == 1
    label = label_of(setup.arm.name, setup.factors, alone=alone)
    final = get_protocol(plan.protocol).applied(config, fold)
    record = RunRecord(
        run=own_name(run_name(config, label, fold), final, runs),
        source=config.data.source,
        backbone=config.model.backbone,
        weights=config.model.weights,
        dim=config.model.dim,
        arm=label,
        line=setup.arm.name,
        recipe=config.recipe,
        factors=setup.factors,
        seed=config.seed,
        fold=fold,
    )
    return Job(final, record)
