"""The kinds of values of a configuration, and the base of its sections."""

import dataclasses
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
)

from keras_dml.wording import listed

# Every number has two bounds, so that no setting can ask for more than any
# machine has. `run/memory.py` refuses what this machine cannot hold. Training
# computes in float32, which holds no numbers beyond these.
Number = Annotated[float, Field(ge=-1e30, le=1e30)]
NotNegative = Annotated[float, Field(ge=0, le=1e30)]
Positive = Annotated[float, Field(ge=1e-30, le=1e30)]
Fraction = Annotated[float, Field(ge=1e-6, lt=1)]
Share = Annotated[float, Field(ge=1e-6, le=1)]
Whole = Annotated[int, Field(ge=-(2**53), le=2**53)]
Monitor = Literal["map@r", "recall@1", "r_precision"]
Minutes = Annotated[float, Field(gt=0, le=1e6)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Few = Annotated[int, Field(ge=1, le=1000)]
Steps = Annotated[int, Field(ge=0, le=1_000_000_000)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Side = Annotated[int, Field(ge=1, le=8192)]
Dim = Annotated[int, Field(ge=1, le=65_536)]


def check_own_names(key: str, names: Iterable[str]) -> None:
    """Raises if two items of a list have one name, by which a run knows them.

    Args:
        key: The key of the list, for the error.
        names: The names of its items.

    Raises:
        ValueError: If a name is there twice.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(
            f"`{key}` must have names of their own. Received twice: "
            f"{listed(twice)}. Give each another `name`."
        )


def _ordered(pair: tuple[float, float]) -> tuple[float, float]:
    if pair[0] > pair[1]:
        raise ValueError("The smaller number of a pair must come first")
    return pair


Range = Annotated[
    tuple[Positive, Positive], Strict(False), AfterValidator(_ordered)
]
AreaRange = Annotated[
    tuple[Share, Share], Strict(False), AfterValidator(_ordered)
]


@dataclasses.dataclass(frozen=True)
class Scheduled:
    """Marks a number, or entries of a mapping, that say when something happens.

    In a training of another length it happens after the same share of it.

    Args:
        unit: What is counted. A number of `"steps"` is a warm-up: it never
            grows.
        keys: The entries of a mapping, in the order in which they happen: one
            that came later still does. Defaults to none, for a number.
    """

    unit: Literal["epochs", "steps"]
    keys: tuple[str, ...] = ()

    def moved(self, value: Any, epochs: float, steps: float) -> Any:
        """Returns the value for a training of another length.

        Args:
            value: The number, `None`, or the mapping.
            epochs: Float, the epochs of the training in parts of those before.
            steps: Float, the same of its steps.
        """
        if value is None:
            return None
        if not self.keys:
            if self.unit == "steps":
                return round(value * min(steps, 1.0))
            # Nothing that happens again may happen every 0 epochs.
            return max(min(value, 1), round(value * epochs))
        moved, last, before = {**value}, 0, None
        for key in self.keys:
            if key in value:
                moved[key] = round(value[key] * epochs)
                if before is not None and value[key] > before:
                    moved[key] = max(moved[key], last + 1)
                before, last = value[key], moved[key]
        return moved


class Section(BaseModel):
    """Base of all sections: rejects unknown keys; values cannot change."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False
    )

    def changed(self, **values: Any) -> Self:
        """Returns a copy with other values, which are not validated.

        Args:
            **values: The values by name. A dict stands for the values to
                change in the section of that name.

        Example:

        >>> from keras_dml.config import resolve
        >>> config = resolve("triplet", "digits")
        >>> config.changed(seed=1, model={"dim": 64}).model.dim
        64
        """
        for name, value in values.items():
            own = getattr(self, name)
            if isinstance(own, Section) and isinstance(value, dict):
                values[name] = own.changed(**value)
        return self.model_copy(update=values)


def scaled(value: Any, epochs: float, steps: float) -> Any:
    """Scales what is `Scheduled` in a section, or in a list of sections.

    Args:
        value: A section, a list, or any other value, which stays.
        epochs: The epochs of the training in parts of those before.
        steps: The same of its steps.
    """
    if isinstance(value, list):
        return [scaled(item, epochs, steps) for item in value]
    if not isinstance(value, Section):
        return value
    changes = {}
    for name, field in type(value).model_fields.items():
        own = getattr(value, name)
        marks = [one for one in field.metadata if isinstance(one, Scheduled)]
        changes[name] = (
            marks[0].moved(own, epochs, steps)
            if marks
            else scaled(own, epochs, steps)
        )
    return value.model_copy(update=changes)
