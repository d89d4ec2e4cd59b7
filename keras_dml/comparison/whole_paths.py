"""Makes the paths of a plan independent of the working directory."""

from typing import Any

from keras_dml.data import readers


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
    }
    for part in ("cases", "findings"):
        whole[part] = [
            {**scope, "sources": [*map(readers.whole_source, scope["sources"])]}
            for scope in values[part]
        ]
    for case in whole["cases"]:
        case["weights"] = readers.whole_weights(case["weights"])
    whole["paper_values"] = [
        {**table, "source": readers.whole_source(table["source"])}
        for table in values["paper_values"]
    ]
    return whole
