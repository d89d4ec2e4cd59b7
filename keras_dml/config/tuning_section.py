"""The `tuning` section of a plan: which settings are tried, and how."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from keras_dml.config.values import (
    Count,
    Monitor,
    Number,
    Section,
    Seed,
    Steps,
    Whole,
)

DEFAULT_TRIALS = 20

MOST_STEPS = 10**9


class RangeConfig(Section):
    """The values of one setting from `low` to `high`, both included.

    Integers stay integers, unless one of the numbers is written with a point.
    `log` draws equally often from every order of magnitude.
    """

    low: Whole | Number
    high: Whole | Number
    step: Whole | Number | None = None
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether the values are integers."""
        numbers = (self.low, self.high, self.step or 1)
        return all(isinstance(number, int) for number in numbers)

    @property
    def size(self) -> int | None:
        """The number of values; `None` for a continuous range."""
        if self.step is None and not self.whole:
            return None
        return round((self.high - self.low) / (self.step or 1)) + 1

    @model_validator(mode="after")
    def _makes_sense(self):
        if not self.low < self.high:
            raise ValueError(
                f"`low` must be below `high`; low is {self.low}, high "
                f"{self.high}"
            )
        if self.log and self.low <= 0:
            raise ValueError(
                f"`log: true` needs a positive `low`; low is {self.low}"
            )
        if self.step is not None:
            self._check_step(self.step)
        return self

    def _check_step(self, step: int | float) -> None:
        if self.log:
            raise ValueError("`log` and `step` exclude each other")
        if step <= 0:
            raise ValueError(f"`step` must be positive; step is {step}")
        steps = (self.high - self.low) / step
        if steps > MOST_STEPS:
            raise ValueError(
                f"a range has at most {MOST_STEPS:,} steps; step is {step}"
            )
        if not math.isclose(steps, round(steps), abs_tol=1e-9):
            last = self.low + math.floor(steps) * step
            raise ValueError(
                f"`high` must be `low` plus a whole number of steps, such as "
                f"{last:.10g}; high is {self.high}"
            )


def _list_of_choices(values: Any) -> list[Any]:
    if not isinstance(values, list) or not values:
        raise ValueError("expected a list of values, or `low` and `high`")
    for number, value in enumerate(values):
        if value in values[:number]:
            raise ValueError(f"{value!r} is in the list twice")
    return values


def _form(values: Any) -> str:
    is_range = isinstance(values, Mapping | RangeConfig)
    return "range" if is_range else "list"


Choices = Annotated[
    list[Any], Field(max_length=1000), BeforeValidator(_list_of_choices)
]
Values = Annotated[
    Annotated[RangeConfig, Tag("range")] | Annotated[Choices, Tag("list")],
    Discriminator(_form),
]
SearchSpace = dict[str, Values]


class PruneConfig(Section):
    """When a training that is worse than half of the others is stopped.

    No training is stopped before `trials` trainings are complete, or within
    its first `epochs` epochs.
    """

    trials: Count = 5
    epochs: Steps = 1


class TuningConfig(Section):
    """Which settings are tried, and which validation metric decides.

    In a plan, all arms try the settings of `space`; an arm may add more.
    """

    kind: Literal["tpe", "grid", "random"] = "tpe"
    trials: Count | None = None
    space: SearchSpace = {}
    monitor: Monitor = "map@r"
    prune: bool | PruneConfig | None = None
    seed: Seed = 0

    @property
    def size(self) -> int | None:
        """The number of points; `None` if continuous or not known yet."""
        sizes = [
            len(values) if isinstance(values, list) else values.size
            for values in self.space.values()
        ]
        finite = [size for size in sizes if size is not None]
        whole = finite and len(finite) == len(sizes)
        return math.prod(finite) if whole else None

    @property
    def budget(self) -> int:
        """The number of trials, at most the number of points."""
        trials = self.trials or DEFAULT_TRIALS
        if self.size is None:
            return trials
        if self.kind == "grid" and self.trials is None:
            return self.size
        return min(trials, self.size)

    @property
    def pruning(self) -> PruneConfig | None:
        """When trainings are stopped early; `None` if they are not.

        By default a grid is not pruned, because its table would be partial.
        """
        if isinstance(self.prune, PruneConfig):
            return self.prune
        prunes = self.kind != "grid" if self.prune is None else self.prune
        return PruneConfig() if prunes else None

    def with_space(self, space: SearchSpace) -> "TuningConfig":
        """Returns the section with more settings, which override its own.

        Raises:
            ValueError: If it is a grid and a setting has a range.
        """
        wider = self.model_copy(update={"space": {**self.space, **space}})
        wider.check_grid()
        return wider

    @model_validator(mode="after")
    def _grid_of_lists(self):
        self.check_grid()
        return self

    def check_grid(self) -> None:
        """Raises if it is a grid and a setting has a range.

        Raises:
            ValueError: Names these settings.
        """
        ranges = [
            f"`{key}`"
            for key, values in self.space.items()
            if isinstance(values, RangeConfig)
        ]
        if self.kind == "grid" and ranges:
            raise ValueError(
                "a grid takes lists of values only; `low` and `high` are for "
                f"`kind: tpe` or `random`. Ranges: {', '.join(ranges)}"
            )
