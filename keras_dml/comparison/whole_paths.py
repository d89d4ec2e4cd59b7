"""Makes the paths of a plan independent of the working directory."""

import os
from typing import Any

from keras_dml.data import readers


def with_whole_paths(values: dict[str, Any]) -> dict[str, Any]:
    """Returns a plan's content with absolute paths of its data and weights.

    Names of data sets and of weights stay, and so do paths of nothing.

    Args:
        values: The content of a plan.
    """
    folder = values["data_dir"]
    whole = {
        **values,
        # A folder may have the name of a data set.
        "data_dir": os.path.abspath(folder)
        if folder and os.path.exists(folder)
        else folder,
        "weights": readers.whole_path(values["weights"]),
        "sources": [*map(readers.whole_path, values["sources"])],
    }
    for part in ("cases", "findings"):
        whole[part] = [
            {**scope, "sources": [*map(readers.whole_path, scope["sources"])]}
            for scope in values[part]
        ]
    for case in whole["cases"]:
        case["weights"] = readers.whole_path(case["weights"])
    whole["paper_values"] = [
        {**table, "source": readers.whole_path(table["source"])}
        for table in values["paper_values"]
    ]
    return whole
