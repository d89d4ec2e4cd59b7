"""Makes the plan that the arguments of `compare` ask for."""

import itertools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from keras_dml import checks
from keras_dml.comparison.claims import claims_about
from keras_dml.comparison.plan_changes import changed
from keras_dml.comparison.run_names import label_of
from keras_dml.config.plan_sections import ArmConfig, PlanConfig
from keras_dml.config.plans import RECORD, load_plan, parse_plan, plan_names
from keras_dml.data import readers
from keras_dml.data.facts import known_datasets
from keras_dml.errors import UsageError
from keras_dml.wording import listed, slug, source_title

PlanLike = str | Path | PlanConfig | Sequence[str]


class PlanOptions(TypedDict, total=False):
    """The options of `compare` that change a plan; `None` changes nothing.

    Attributes:
        recipes: The recipes to compare on data, `NAME[:PRESET],...`
        arms: The arms of the plan to keep, `NAME,...`
        seeds: The seeds of each arm, such as 0,1,2. In Python, an integer `n`
            stands for the seeds 0 to `n - 1`. Defaults to those of the plan; 0
            for data.
        backbones: The networks, `NAME,...`
        dims: The lengths of an embedding, such as 64,512.
        weights: `"imagenet"`, `"none"` or a file, for all networks.
        protocol: `"recipe"`, `"oracle"`, `"fixed_validation"`, `"two_stage"`,
            or `"cross_validation[:FOLDS]"`. In Python also a mapping, the
            `protocol` section. A plan of this kind keeps its other keys.
            Defaults to that of the plan.
        epochs: Epochs of every run.
        steps_per_epoch: Steps of every epoch.
        source: The data to run the plan on instead.
        data_dir: Folder that holds the data set's files.
        set: Settings of all runs, `key=value`. In Python also a mapping of
            dotted keys to values.
    """

    recipes: Sequence[str] | None
    arms: Sequence[str] | None
    seeds: int | Sequence[int] | None
    backbones: Sequence[str] | None
    dims: Sequence[int] | None
    weights: str | None
    protocol: str | Mapping[str, Any] | None
    epochs: int | None
    steps_per_epoch: int | None
    source: str | Sequence[str] | None
    data_dir: str | Path | None
    set: Mapping[str, Any] | Sequence[str] | None


def make_plan(
    plan: PlanLike, options: PlanOptions | None = None
) -> tuple[PlanConfig, str]:
    """Makes the plan that a caller asks for, and a name for its folder.

    Paths of data and weights become absolute, so that the plan means the same
    in every working directory.

    Args:
        plan: The name of a plan, a path that ends in `.yaml`, a plan, the
            folder of a comparison, or, with `recipes`, the data: a source or a
            list of sources.
        options: Changes of the plan. Defaults to `None`.

    Raises:
        UsageError: If a name is unknown or a value is not valid.
        TypeError: If an option is unknown.

    Example:

    >>> plan, name = make_plan("photos", {"recipes": ["ln", "triplet"]})
    >>> name
    'photos-comparison'
    """
    given: dict[str, Any] = {
        key: value
        for key, value in (options or {}).items()
        if value is not None
    }
    checks.known_options(given, PlanOptions, "a comparison")
    made, name = _base(plan, given.pop("recipes", None))
    if "arms" in given:
        made = _only(made, list(given.pop("arms")))
    return changed(made, given), name


def arms(plan: PlanConfig) -> list[ArmConfig]:
    """Returns the arms of a plan: its recipes unchanged, then its `arms`.

    If a plan has `arms` and a single recipe, the arms start from this recipe,
    and the recipe itself is not an arm.
    """
    only = plan.recipes[0] if len(plan.recipes) == 1 else None
    unchanged = [] if only and plan.arms else plan.recipes
    return [
        *(ArmConfig(name=recipe, recipe=recipe) for recipe in unchanged),
        *(arm.changed(recipe=arm.recipe or only) for arm in plan.arms),
    ]


def rows(plan: PlanConfig) -> dict[str, str]:
    """Maps the full name of each row of a plan's tables to its name there.

    A row is an arm with values of the `grid`. The full name has the arm, which
    the name in the tables lacks if it is the only one, and the settings in
    alphabetical order, in whatever order the `grid` has them.
    """
    named = arms(plan)
    labels = {}
    for arm, *values in itertools.product(named, *plan.grid.values()):
        factors = dict(zip(plan.grid, values, strict=True))
        ordered = dict(sorted(factors.items()))
        full = label_of(arm.name, ordered, alone=False)
        labels[full] = label_of(arm.name, factors, alone=len(named) == 1)
    return labels


def backbones(plan: PlanConfig, source: str) -> list[str | None]:
    """Returns a plan's networks for a source; `None` is the recipe's."""
    skipped = [case for case in plan.cases if case.skip]
    named: list[str | None] = [*plan.backbones] or [None]
    return [
        backbone
        for backbone in named
        if not any(case.covers(source, backbone) for case in skipped)
    ]


def _base(
    plan: PlanLike, recipes: Sequence[str] | None
) -> tuple[PlanConfig, str]:
    if isinstance(plan, PlanConfig):
        checks.require(
            recipes is None,
            "recipes",
            "None if `plan` is a plan",
            recipes,
            "Choose some of its lines with `arms`.",
        )
        return plan, slug(plan.title)
    recipes = recipes.split(",") if isinstance(recipes, str) else recipes
    sources = [str(plan)] if isinstance(plan, (str, Path)) else [*plan]
    checks.require(sources, "plan", "a plan, or at least one data set", plan)
    folder = Path(sources[0]).absolute()
    if (folder / RECORD).is_file():
        stored = load_plan(folder / RECORD)
        return _with_recipes(stored, recipes), str(folder)
    if recipes is None:
        if len(sources) > 1 or _is_data(sources[0]):
            raise UsageError(
                "`recipes` must name what to compare on "
                f"{listed(map(source_title, sources))}, such as "
                "`recipes='norm_softmax,triplet'`. Received: none. "
                "`keras-dml recipes` lists them."
            )
        if os.sep in sources[0] and not folder.exists():
            raise UsageError(
                f"There is no folder or plan file {sources[0]}. Give the name "
                "or the `.yaml` file of a plan, the folder of a comparison, "
                "or images and the `recipes` to compare on them."
            )
        return load_plan(sources[0]), Path(sources[0]).stem
    sources = [readers.whole_source(str(source)) for source in sources]
    values = {
        "title": usual_title(recipes, sources),
        "sources": sources,
        "recipes": list(recipes),
    }
    names = [_name(source) for source in sources]
    return parse_plan(values), f"{'-'.join(names)}-comparison"


def usual_title(recipes: Sequence[str], sources: Sequence[str]) -> str:
    """Returns the title of a plan that only names recipes and data.

    >>> usual_title(["ln", "triplet"], ["/data/photos.csv"])
    'ln, triplet on photos'
    """
    on = listed(map(source_title, sources))
    if len(sources) == 1:
        on = _name(sources[0])
    return f"{', '.join(recipes)} on {on}"


def _name(source: str) -> str:
    """Returns the name of a folder, or that of a file without its suffix."""
    path = Path(source)
    return path.stem if path.suffix.lower() == ".csv" else path.name


def _is_data(name: str) -> bool:
    return name not in plan_names() and (
        Path(name).is_dir()
        or name.endswith(".csv")
        or name.startswith("tfds:")
        or name in known_datasets()
    )


def _with_recipes(
    plan: PlanConfig, recipes: Sequence[str] | None
) -> PlanConfig:
    """Returns the plan of a folder with these recipes instead of its own."""
    if recipes is None:
        return plan
    values = plan.model_dump(mode="json")
    if plan.title == usual_title(plan.recipes, plan.sources):
        values["title"] = usual_title(recipes, plan.sources)
    # What names other arms.
    values |= {"arms": [], "findings": [], "paper_values": []}
    return parse_plan(values | {"recipes": list(recipes)})


def _only(plan: PlanConfig, names: list[str]) -> PlanConfig:
    """Returns the plan with only these arms and what it says about them."""
    all_arms = {arm.name: arm for arm in arms(plan)}
    for name in names or [""]:
        checks.one_of("arms", name, all_arms)
    values = plan.model_dump(mode="json")
    values["recipes"] = []
    values["arms"] = [all_arms[name].model_dump() for name in names]
    only = parse_plan(values | {"findings": [], "paper_values": []})
    before, after = rows(plan), rows(only)
    kept = {before[row]: label for row, label in after.items()}
    kept |= {name: name for name in names}
    return parse_plan(values | claims_about(values, kept))
