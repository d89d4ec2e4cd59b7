"""Loads plans by name or from a file."""

import os
from typing import Any

from keras_dml.config.plan_sections import PlanConfig
from keras_dml.config.validation import validated
from keras_dml.config.yaml_files import (
    dump_yaml,
    is_path,
    packaged_names,
    read_named,
)
from keras_dml.errors import UsageError

# The plan in the folder of a comparison.
RECORD = "plan.yaml"

# Version 0.2 merged plans: the new name, and how the old names start.
_MERGED = {
    "deck_tournament": ("deck_cub_", "deck_cars_"),
    "deck_own_losses": ("deck_own_losses_",),
    "deck_search": ("deck_search_",),
    "heated_up_tables1_4": tuple(f"heated_up_table{n}" for n in range(1, 5)),
    "proxynca_pp_tables3_6": tuple(
        f"proxynca_pp_table{n}" for n in range(3, 7)
    ),
    "proxynca_pp_tables12_13": ("proxynca_pp_table12", "proxynca_pp_table13"),
    "proxynca_pp_tables14_15": ("proxynca_pp_table14", "proxynca_pp_table15"),
    "proxy_isa_table1": ("proxy_isa_table1_",),
    "proxy_isa_table2": ("proxy_isa_table2_",),
    "proxy_isa_table3": ("proxy_isa_weights",),
    "proxy_isa_table4": ("proxy_isa_table4_",),
}


def plan_names() -> list[str]:
    """Returns the sorted names of the plans that come with the package."""
    return packaged_names("plans")


def load_plan(name: str | os.PathLike[str]) -> PlanConfig:
    """Loads a plan by its name or from a YAML file.

    Args:
        name: The name of a plan that comes with the package, or a path that
            ends in `.yaml`.

    Raises:
        UsageError: If there is no such plan, or its file has mistakes; names
            all of them.

    Example:

    >>> load_plan("demo").seeds
    [0, 1]
    """
    name, names = os.fspath(name), plan_names()
    unknown = name not in names and not is_path(name)
    for whole, parts in _MERGED.items():
        if unknown and name.startswith(parts):
            raise UsageError(
                f"The plan {name!r} is part of the plan {whole!r} now. Its "
                "`sources`, `backbones` and `arms` choose what is run."
            )
    return parse_plan(read_named("plans", name, names, "A plan"))


def parse_plan(values: dict[str, Any]) -> PlanConfig:
    """Validates the content of a plan.

    Raises:
        UsageError: If the content has mistakes; names all of them.
    """
    return validated(PlanConfig, values)


def narrowed(values: dict[str, Any]) -> dict[str, Any]:
    """Returns a plan's content without cases and findings of absent data.

    After `sources` or `backbones` were replaced, the plan keeps only the
    cases and findings that cover the present ones.
    """
    kept: dict[str, list[dict[str, Any]]] = {}
    for part in ("cases", "findings"):
        kept[part] = []
        for scope in values[part]:
            both = {
                key: [name for name in scope[key] if name in values[key]]
                for key in ("sources", "backbones")
            }
            if all(both[key] or not scope[key] for key in both):
                kept[part].append({**scope, **both})
    return {**values, **kept}


def dump_plan(plan: PlanConfig) -> str:
    """Returns the plan as YAML; `parse_plan` reads its content."""
    return dump_yaml(plan.model_dump(mode="json"))
