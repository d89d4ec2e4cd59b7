"""Makes the paths of a plan independent of the working directory."""

from typing import Any

from keras_dml.config.yaml_files import is_path
from keras_dml.data import readers
from keras_dml.run.folder import PATHS


def with_whole_paths(values: dict[str, Any]) -> dict[str, Any]:
    """Returns a plan's content with absolute paths of its data and weights.

    Names of data sets and of weights stay, and so do paths of nothing.

    Args:
        values: The content of a plan.
    """
    whole = {
        **values,
        "data_dir": readers.whole_path(values["data_dir"]),
        "weights": readers.whole_weights(values["weights"]),
        "sources": [*map(readers.whole_source, values["sources"])],
        "arms": [
            {**arm, "recipe": _whole_recipe(arm["recipe"])}
            for arm in values["arms"]
        ],
    }
    for part in ("cases", "findings"):
        whole[part] = [
            {**scope, "sources": [*map(readers.whole_source, scope["sources"])]}
            for scope in values[part]
        ]
    for case in whole["cases"]:
        case["weights"] = readers.whole_weights(case["weights"])
    for part in (whole, *whole["cases"], *whole["arms"]):
        part["set"] = {
            key: PATHS[key](value)
            if key in PATHS and isinstance(value, str)
            else value
            for key, value in part["set"].items()
        }
    whole["paper_values"] = [
        {**table, "source": readers.whole_source(table["source"])}
        for table in values["paper_values"]
    ]
    return whole


def _whole_recipe(recipe: str | None) -> str | None:
    return readers.whole_path(recipe) if is_path(recipe or "") else recipe
