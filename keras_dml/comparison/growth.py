"""Adds what a command compares to what a folder compares already."""

from collections.abc import Iterable, Mapping
from typing import Any

from keras_dml.comparison.claims import claims_about, joined_claims
from keras_dml.comparison.jobs import Job, make_jobs
from keras_dml.comparison.plans import arms, rows, usual_title
from keras_dml.comparison.whole_paths import with_whole_paths
from keras_dml.config.plan_sections import PlanConfig
from keras_dml.config.plans import parse_plan
from keras_dml.errors import Mistakes, UsageError
from keras_dml.fit_options import PLAN_KEYS
from keras_dml.naming import flatten
from keras_dml.wording import listed, source_title

# Keys of a plan that hold in every run.
_SHARED = ("data_dir", "weights", "protocol", "budget", "set", "tuning")
_OPTIONS = {key: option for option, key in PLAN_KEYS.items()}
# Keys whose values are joined, and keys that only describe the runs.
_JOINED = ("sources", "backbones", "dims", "seeds", "cases")
_WORDS = ("about", "paper", "metrics")
_EMPTY: tuple[Any, ...] = (None, [], {})


def grown(stored: PlanConfig, given: PlanConfig) -> PlanConfig:
    """Returns the plan of a folder with the additions of another plan.

    Data, arms, networks, sizes, seeds and values of the grid join those of the
    folder, in whose order they stay. Nothing is taken away: findings and
    printed values of the plan given replace those about the same arms, data
    and networks only.

    Args:
        stored: The plan of the folder.
        given: The plan that a command asks for.

    Raises:
        UsageError: If the plan given has mistakes, or would change a run of
            the folder: its budget, protocol, network or another setting.

    Example:

    >>> from keras_dml.comparison.plans import make_plan
    >>> first = make_plan("digits", {"recipes": ["ln"]})[0]
    >>> second = make_plan("digits", {"recipes": ["bn"], "seeds": 2})[0]
    >>> whole = grown(first, second)
    >>> whole.recipes, whole.seeds
    (['ln', 'bn'], [0, 1])
    """
    # Plans of version 0.1 kept relative paths.
    stored, given = _with_whole_paths(stored), _with_whole_paths(given)
    if stored == given:
        return stored
    mistakes = Mistakes()
    with mistakes.collected():
        make_jobs(given)
    with mistakes.collected():
        _check_shared(stored, given)
    mistakes.check()
    whole = _joined(stored, given)
    # The plan given may correct what the folder's plan says of its runs.
    silent = stored.changed(findings=[], paper_values=[], metrics=[])
    _check_kept(make_jobs(silent), make_jobs(whole))
    return whole


def additions(stored: PlanConfig, whole: PlanConfig) -> str:
    """Returns what a plan has more than an earlier one in words, or `""`."""
    parts = [
        *(f"`{name}`" for name in _new(_names(stored), _names(whole))),
        *map(source_title, _new(stored.sources, whole.sources)),
        *_new(stored.backbones, whole.backbones),
        *(f"{dim}-d" for dim in _new(stored.dims, whole.dims)),
        *(f"seed {seed}" for seed in _new(stored.seeds, whole.seeds)),
        *(
            f"{key} {_said(value)}"
            for key, values in whole.grid.items()
            for value in _new(stored.grid.get(key, []), values)
        ),
    ]
    return listed(parts)


def _with_whole_paths(plan: PlanConfig) -> PlanConfig:
    return parse_plan(with_whole_paths(plan.model_dump(mode="json")))


def _names(plan: PlanConfig) -> list[str]:
    return [arm.name for arm in arms(plan)]


def _new(before: Iterable[Any], after: Iterable[Any]) -> list[Any]:
    """Returns the items of a list that another one does not have."""
    known = [*before]
    return [item for item in after if item not in known]


def _check_shared(stored: PlanConfig, given: PlanConfig) -> None:
    """Raises if the plans differ in what must be equal in both."""
    known = {arm.name: arm for arm in arms(stored)}
    both = [arm for arm in arms(given) if arm.name in known]
    old = _shared(stored, [known[arm.name] for arm in both])
    new = _shared(given, both)
    # Whether each run takes the network and the size of its recipe.
    for key in ("backbones", "dims"):
        values = getattr(stored, key), getattr(given, key)
        if any(values) and not all(values):
            old[key], new[key] = values
    changed = [
        f"`{_OPTIONS.get(key, key)}` was {_said(old.get(key))}, received "
        f"{_said(new.get(key))}"
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    ]
    if changed:
        raise UsageError(
            "Runs that are compared share their settings, and those of the "
            f"folder are others: {'; '.join(changed)}. Give those of the "
            "folder to add to it, or choose another `output`."
        )


def _shared(plan: PlanConfig, own: Iterable[Any]) -> dict[str, Any]:
    values = plan.model_dump(mode="json")
    shared = {key: values[key] for key in _SHARED}
    shared["arms"] = {arm.name: arm.model_dump(mode="json") for arm in own}
    # A further setting of a grid would rename its arms.
    shared["grid"] = sorted(plan.grid)
    leaves = flatten(shared).items()
    return {key: value for key, value in leaves if value not in _EMPTY}


def _said(value: Any) -> str:
    """Returns a value as a person would write it."""
    if isinstance(value, list) and value:
        return ", ".join(map(str, value))
    return "not given" if value in _EMPTY else str(value)


def _joined(stored: PlanConfig, given: PlanConfig) -> PlanConfig:
    before = stored.model_dump(mode="json")
    after = given.model_dump(mode="json")
    values = before | {key: after[key] for key in _WORDS if after[key]}
    for key in _JOINED:
        values[key] = before[key] + _new(before[key], after[key])
    values["grid"] = {
        key: old + _new(old, after["grid"][key])
        for key, old in before["grid"].items()
    }
    if not (stored.arms or given.arms):
        values["recipes"] += _new(stored.recipes, given.recipes)
    elif added := _new(_names(stored), _names(given)):
        own = [arm for arm in arms(given) if arm.name in added]
        values["recipes"] = []
        values["arms"] = [
            arm.model_dump(mode="json") for arm in (*arms(stored), *own)
        ]
    usual = usual_title(given.recipes, given.sources)
    if given.title not in (usual, stored.title):
        values["title"] = given.title
    elif stored.title == usual_title(stored.recipes, stored.sources):
        values["title"] = usual_title(values["recipes"], values["sources"])
    whole = parse_plan(values | {"findings": [], "paper_values": []})
    # A plan of one arm leaves it out of the names of its rows.
    labels = rows(whole)
    names = {label: labels[row] for row, label in rows(given).items()}
    names |= {name: name for name in _names(given)}
    said = claims_about(after, names)
    claims = joined_claims(before, after | said, {*names.values()})
    return parse_plan(values | claims)


def _check_kept(before: Iterable[Job], after: Iterable[Job]) -> None:
    """Raises unless every run has the name and the settings that it had."""
    now: Mapping[str, Job] = {job.run: job for job in after}
    changed = [
        f"`{job.run}`"
        for job in before
        if job.run not in now or now[job.run].config != job.config
    ]
    if changed:
        raise UsageError(
            "What is added would change or rename runs of the folder: "
            f"{listed(dict.fromkeys(changed))}. Choose another `output`."
        )
