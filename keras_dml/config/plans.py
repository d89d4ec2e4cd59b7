"""Plans by name or from a file."""

from pathlib import Path
from typing import Any

from keras_dml.config.plan_sections import PlanConfig
from keras_dml.config.validation import validated
from keras_dml.config.yaml_files import (
    dump_yaml,
    packaged_names,
    read_packaged,
    read_yaml,
)
from keras_dml.errors import UsageError
from keras_dml.naming import nearest


def plan_names() -> list[str]:
    """Names of the plans that come with the package, sorted."""
    return packaged_names("plans")


def load_plan(name: str) -> PlanConfig:
    """Loads a plan by its name or from a YAML file.

    Args:
        name: The name of a plan that comes with the package, or a path that
            ends in `.yaml`.

    Raises:
        UsageError: If there is no such plan, or its file has mistakes, all of
            which are named.

    Example:

    >>> load_plan("demo").seeds
    [0, 1]
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"There is no plan file {name}.")
        return parse_plan(read_yaml(path))
    names = plan_names()
    if name not in names:
        raise UsageError(
            "A plan must be a known name or a YAML file. Received: "
            f"{name!r}. Nearest: {nearest(name, names)}. `keras-dml plans` "
            "lists them all."
        )
    return parse_plan(read_packaged("plans", name))


def parse_plan(values: dict[str, Any]) -> PlanConfig:
    """Validates the content of a plan.

    Raises:
        UsageError: Naming all mistakes.
    """
    return validated(PlanConfig, values)


def dump_plan(plan: PlanConfig) -> str:
    """The plan as YAML; `parse_plan` reads it back."""
    return dump_yaml(plan.model_dump(mode="json"))
