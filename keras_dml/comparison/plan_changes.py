"""Changes a plan by the options of `compare`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from keras_dml import checks
from keras_dml.comparison.whole_paths import with_whole_paths
from keras_dml.config.plan_sections import MOST_RUNS, PlanConfig, ProtocolConfig
from keras_dml.config.plans import narrowed, parse_plan
from keras_dml.config.settings import parse_settings
from keras_dml.errors import UsageError
from keras_dml.naming import flatten

# What the options of a plan set in its runs, over which `set` wins.
_KEYS = {
    "backbones": "model.backbone",
    "dims": "model.dim",
    "seeds": "seed",
    "weights": "model.weights",
}


def changed(plan: PlanConfig, given: Mapping[str, Any]) -> PlanConfig:
    """Returns a plan with options and absolute paths.

    Args:
        plan: The plan.
        given: The options of `PlanOptions` that are given, but for those that
            choose recipes and arms.

    Raises:
        UsageError: If a value is not valid, or a setting would have no effect.
    """
    values = plan.model_dump(mode="json")
    settings: dict[str, Any] = {}
    for key, value in given.items():
        if key in ("epochs", "steps_per_epoch"):
            values["budget"][key] = value
        elif key == "set":
            settings = dict(parse_settings(value))
            values["set"] |= settings
        elif key == "source":
            one = isinstance(value, (str, Path))
            values["sources"] = [*map(str, [value] if one else value)]
        elif key == "seeds":
            if isinstance(value, int):
                value = range(min(value, MOST_RUNS + 1))
            values["seeds"] = list(value)
        elif key == "protocol":
            values["protocol"] = _protocol(value, plan.protocol)
        elif key in ("data_dir", "weights"):
            values[key] = str(value)
        else:
            values[key] = list(value)
    if "weights" in given:
        for case in values["cases"]:
            case["weights"] = None
    made = parse_plan(narrowed(with_whole_paths(values)))
    _check_effect(made, settings)
    _check_options(made, given)
    return made


def _protocol(
    value: str | Mapping[str, Any], before: ProtocolConfig
) -> dict[str, Any]:
    if not isinstance(value, str):
        return dict(value)
    kind, colon, folds = value.partition(":")
    counted = kind == "cross_validation" and folds in map(str, range(1001))
    wanted = "a kind, or cross_validation and its folds: cross_validation:5"
    checks.require(not colon or counted, "protocol", wanted, value)
    # Nobody asked to change the split, the fraction or what is concatenated.
    kept = before.model_dump() if kind == before.kind else {"kind": kind}
    return {**kept, **({"folds": int(folds)} if colon else {})}


def _check_effect(plan: PlanConfig, settings: Mapping[str, Any]) -> None:
    """Raises if a setting of all runs loses to another part of the plan."""
    for key in flatten(settings):
        for place, own in _stronger(plan):
            if any(_overlap(key, other) for other in flatten(own)):
                raise UsageError(
                    "`set` must name settings that no other part of a plan "
                    f"sets. Received: set={key}, but {place} of the plan sets "
                    "it and wins. Change it there, or leave that part out."
                )


def _check_options(plan: PlanConfig, given: Mapping[str, Any]) -> None:
    """Raises if an option loses to what the plan sets for every run."""
    for option, key in _KEYS.items():
        for_all = {**plan.set, **plan.grid}
        own = [arm.set for arm in plan.arms]
        if option in given and (
            key in flatten(for_all)
            or (own and all(key in flatten(one) for one in own))
        ):
            raise UsageError(
                f"`{option}` must name what the plan leaves open. Received: "
                f"{given[option]!r}, but the plan sets `{key}` for every run. "
                f"Leave `{option}` out, or change it there."
            )


def _stronger(plan: PlanConfig) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields the parts of a plan that win over `set`, and their settings."""
    yield "the `grid`", plan.grid
    for case in plan.cases:
        yield "a case", case.set
    for arm in plan.arms:
        yield f"the arm `{arm.name}`", arm.set
        if plan.tuning is not None:
            yield "the tuning", dict.fromkeys(arm.space)
    if plan.tuning is not None:
        yield "the tuning", dict.fromkeys(plan.tuning.space)


def _overlap(first: str, second: str) -> bool:
    """Returns whether two dotted keys set the same, in whole or in part."""
    return f"{first}.".startswith(f"{second}.") or f"{second}.".startswith(
        f"{first}."
    )
