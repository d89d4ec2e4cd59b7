"""The sections of a plan: what to compare, on which data, and how."""

import math
from collections import Counter
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, model_validator

from keras_dml.config.tuning_section import SearchSpace, TuningConfig
from keras_dml.config.values import Count, Dim, Fraction, Number, Section, Seed
from keras_dml.wording import listed


class ProtocolConfig(Section):
    """How classes are split and what chooses the epoch that is measured.

    `recipe` leaves both to each recipe. `oracle` chooses on the test classes,
    as most papers do, and marks the results as oracle. `fixed_validation`
    holds out `fraction` of the training classes, or of the images of each
    where fewer than `data.validation_from` train. `cross_validation` trains
    once for each of `folds`; `concatenated` also measures the concatenated
    embeddings of all folds. `two_stage` finds the schedule on half of the
    training classes and trains on all of them.
    """

    kind: Literal[
        "recipe", "oracle", "fixed_validation", "cross_validation", "two_stage"
    ] = "fixed_validation"
    fraction: Fraction = 0.1
    folds: Annotated[int, Field(ge=2, le=1000)] = 10
    split: Literal["random", "contiguous"] = "random"
    concatenated: bool = False


class BudgetConfig(Section):
    """The length of every training: epochs, and steps of an epoch.

    The phases of a recipe keep their shares of the epochs. `None` keeps the
    length that each recipe sets.
    """

    epochs: Count | None = None
    steps_per_epoch: Count | None = None


class ArmConfig(Section):
    """One line of a table: a recipe and the changes to it.

    The plan's `tuning` tries `space` for this arm, in addition to the space
    that it tries for all arms. An arm with `tuned_as` is not tuned: it takes
    what the tuning of the arm of that name finds.
    """

    name: str
    recipe: str | None = None
    set: dict[str, Any] = {}
    space: SearchSpace = {}
    tuned_as: str | None = None


class ScopeConfig(Section):
    """The data and networks that are covered; an empty list covers all."""

    sources: list[str] = []
    backbones: list[str] = []

    def covers(self, source: str, backbone: str | None) -> bool:
        """Returns whether the scope covers these data and this network."""
        return (not self.sources or source in self.sources) and (
            not self.backbones or backbone in self.backbones
        )


class CaseConfig(ScopeConfig):
    """Settings for some networks or data; an arm's own settings win.

    If several cases cover a run, the later ones win. With `skip` the plan
    leaves the combination out.
    """

    weights: str | None = None
    set: dict[str, Any] = {}
    skip: bool = False


class FindingConfig(ScopeConfig):
    """A claim: the arms of `better` exceed those of `than`.

    The claim compares the means of both sides; with `each`, every arm of
    `better` with every arm of `than`. Without `metric` it uses the metric
    that ranks the arms.
    """

    claim: str
    better: Annotated[list[str], Field(min_length=1)]
    than: Annotated[list[str], Field(min_length=1)]
    metric: str | None = None
    each: bool = False


class PaperTable(Section):
    """Numbers that a paper prints, shown next to the measured ones.

    `values` maps each arm to its metrics and their values on the data
    `source`, `pretrained` each arm to those of its features before training.
    Without `backbone` or `dim`, the numbers are shown next to all networks or
    sizes.
    """

    where: str
    source: str
    backbone: str | None = None
    dim: Dim | None = None
    values: dict[str, dict[str, Number]]
    pretrained: dict[str, dict[str, Number]] = {}


# Trainings that nobody has the time for.
MOST_RUNS = 100_000


class PlanConfig(Section):
    """Everything that `keras-dml compare` runs, at most 100,000 trainings."""

    title: str
    paper: str = ""
    about: str = ""
    sources: Annotated[list[str], Field(min_length=1)]
    data_dir: str | None = None
    recipes: list[str] = []
    arms: list[ArmConfig] = []
    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    backbones: list[str] = []
    weights: str | None = None
    dims: list[Dim] = []
    seeds: Annotated[list[Seed], Field(min_length=1)] = [0]
    protocol: ProtocolConfig = ProtocolConfig()
    budget: BudgetConfig = BudgetConfig()
    set: dict[str, Any] = {}
    cases: list[CaseConfig] = []
    metrics: list[str] = []
    # Plans of version 0.1 call it `search`.
    tuning: Annotated[
        TuningConfig | None,
        Field(validation_alias=AliasChoices("tuning", "search")),
    ] = None
    findings: list[FindingConfig] = []
    paper_values: list[PaperTable] = []

    @model_validator(mode="after")
    def _names_are_known(self):
        if not self.recipes and not self.arms:
            raise ValueError("a plan needs `recipes` or `arms`")
        names = [*self.recipes, *(arm.name for arm in self.arms)]
        runs = self._most_runs(len(names))
        if runs > MOST_RUNS:
            raise ValueError(
                f"a plan has at most {MOST_RUNS:,} trainings; arms, grid, "
                f"data, networks, sizes and seeds make {runs:,}"
            )
        for scope in (*self.cases, *self.findings):
            strange = sorted(
                {*scope.backbones} - {*self.backbones}
                | {*scope.sources} - {*self.sources}
            )
            if strange:
                raise ValueError(
                    "`cases` and `findings` must name backbones and sources "
                    f"of the plan; unknown: {listed(strange)}"
                )
        twice = sorted(name for name, n in Counter(names).items() if n > 1)
        if twice:
            raise ValueError(
                f"arms need names of their own; twice: {listed(twice)}"
            )
        for key in ("sources", "backbones", "dims", "seeds"):
            given = Counter(getattr(self, key))
            again = [str(one) for one, count in given.items() if count > 1]
            if again:
                raise ValueError(f"`{key}` name twice: {listed(again)}")
        bare = [arm.name for arm in self.arms if arm.recipe is None]
        if bare and len(self.recipes) != 1:
            raise ValueError(
                f"the arms {listed(bare)} name no `recipe`; give each its "
                "own, or the plan exactly one in `recipes`"
            )
        return self

    def _most_runs(self, arms: int) -> int:
        """Returns the number of trainings before cases leave some out."""
        listed: list[list[Any]] = [self.sources, self.backbones, self.dims]
        listed += [self.seeds, *self.grid.values()]
        lengths = [len(one) or 1 for one in listed]
        crossed = self.protocol.kind == "cross_validation"
        return math.prod(
            [arms, self.protocol.folds if crossed else 1, *lengths]
        )

    def _check_tuned_as(self, names: AbstractSet[str]) -> None:
        for arm in self.arms:
            if arm.tuned_as and arm.space:
                raise ValueError(
                    f"the arm {arm.name} has both a `space` and `tuned_as`; "
                    "leave out one"
                )
            if arm.tuned_as and arm.tuned_as not in names:
                raise ValueError(
                    f"`tuned_as` of the arm {arm.name} must name an arm of "
                    f"the plan that is tuned itself; received {arm.tuned_as}"
                )

    @model_validator(mode="after")
    def _every_arm_has_something_to_tune(self):
        spaces = {arm.name: arm.space for arm in self.arms if not arm.tuned_as}
        if not self.arms or len(self.recipes) > 1:
            spaces |= {recipe: {} for recipe in self.recipes}
        if self.tuning is None:
            idle = [arm.name for arm in self.arms if arm.space]
            if idle:
                raise ValueError(
                    f"the arms {listed(idle)} have a `space`, but the plan "
                    "has no `tuning` that would try it"
                )
            return self
        self._check_tuned_as({*spaces})
        empty = []
        for name, space in spaces.items():
            tuned = self.tuning.with_space(space).space
            empty += [] if tuned else [name]
            fixed = sorted({*tuned} & {*self.grid})
            if fixed:
                raise ValueError(
                    "a setting is either tuned or in `grid`; both: "
                    f"{listed(fixed)}"
                )
        if empty:
            raise ValueError(
                f"there is nothing to tune for {listed(empty)}: "
                "`tuning.space` and the `space` of an arm map settings, such "
                "as `model.scale`, to a list of values or to `low` and `high`"
            )
        return self
