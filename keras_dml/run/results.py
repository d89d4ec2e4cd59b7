"""The fields of `metrics.json` that pages and tables read back."""

from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    RootModel,
    model_validator,
)

from keras_dml.run.conclusion import HEADLINE

# Means of metrics and differences between them; charts and pages need more
# than "a number".
Value = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]


def _printable(text: str) -> str:
    text.encode()
    return text


# JSON can hold characters that no file or terminal takes.
Text = Annotated[str, AfterValidator(_printable)]
Values = dict[Text, Value]


class Means(RootModel[Values]):
    """The means of the metrics on some images, by name."""

    model_config = ConfigDict(strict=True)


class _Fields(BaseModel):
    """Accepts further fields: pages and tables do not read them."""

    model_config = ConfigDict(strict=True, extra="allow")


class _Gain(_Fields):
    gain: Value
    low: Value
    high: Value


class _WorseClasses(_Fields):
    worse: NonNegativeInt
    classes: NonNegativeInt


class _Interpolation(_Fields):
    share: Value | None = None
    kept: bool = False
    values: Values = {}
    pretrained: Value | None = None
    lower: list[Value] = []


class _Length(_Fields):
    steps: NonNegativeInt
    passes: NonNegativeFloat


class Results(_Fields):
    """What `metrics.json` must hold, and of which type.

    Version 0.1 wrote no field that has a default here.
    """

    dataset: Text
    recipe: Text
    section: Text
    backbone: Text
    seed: NonNegativeInt
    train_classes: NonNegativeInt
    test_classes: NonNegativeInt
    num_queries: NonNegativeInt
    num_lone_queries: NonNegativeInt
    oracle: bool
    partial: bool
    seen: bool
    selected_by: Text
    validation: dict[str, float]
    pretrained_features: Text
    pretrained: Values
    before: Values
    after: Values
    train_seconds: NonNegativeFloat
    versions: dict[Text, Text]
    images: dict[Text, Text] = {}
    off_the_shelf: Values = {}
    gains: dict[str, dict[str, _Gain]] = {}
    worse_classes: _WorseClasses | None = None
    interpolation: _Interpolation = _Interpolation()
    length: _Length | None = None
    shrinkage: float | None = None
    seconds: dict[Text, NonNegativeFloat] = {}
    dim: NonNegativeInt | None = None
    weights_hash: Text | None = None
    image_size: NonNegativeInt | None = None
    natural_size: NonNegativeInt | None = None
    final: bool = False
    refit: bool = False
    several_labels: bool = False
    groups: Values = {}
    prefixes: dict[Text, Values] = {}

    @model_validator(mode="after")
    def _same_metrics(self) -> Self:
        given = self.model_fields_set
        tables = [self.pretrained, self.before, self.after]
        if "off_the_shelf" in given:
            tables.append(self.off_the_shelf)
        names = {HEADLINE, *self.after}
        if any(table.keys() != names for table in tables):
            raise ValueError(
                f"its tables must hold the same metrics, {HEADLINE} among them"
            )
        if self.groups and not {"recall@1", HEADLINE} <= self.groups.keys():
            raise ValueError(f"`groups` must hold recall@1 and {HEADLINE}")
        if any(
            not size.isdecimal() or {"recall@1", HEADLINE} - one.keys()
            for size, one in self.prefixes.items()
        ):
            raise ValueError(
                f"`prefixes` must hold recall@1 and {HEADLINE} by size"
            )
        if self.gains:
            needed = {"off_the_shelf", "interpolation", "shrinkage"}
            if needed - given:
                raise ValueError(f"`gains` needs {sorted(needed)}")
            if HEADLINE not in self.gains.get("off_the_shelf", {HEADLINE: 0}):
                raise ValueError(f"`gains` must hold {HEADLINE}")
        return self
