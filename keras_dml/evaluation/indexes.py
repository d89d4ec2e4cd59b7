"""An index by its name, and a saved one whatever it is."""

import os
import warnings
from pathlib import Path
from typing import Any

from keras_dml.errors import UsageError
from keras_dml.evaluation.exact_index import ExactIndex
from keras_dml.evaluation.index import Index
from keras_dml.evaluation.scann_index import ScannIndex
from keras_dml.evaluation.scann_searcher import import_scann

INDEXES: dict[str, type[Index]] = {"exact": ExactIndex, "scann": ScannIndex}


def make_index(
    name: str = "exact", *, fall_back: bool = False, **arguments: Any
) -> Index:
    """Makes an empty index.

    Args:
        name: `"exact"` or `"scann"`. Defaults to `"exact"`.
        fall_back: Boolean, whether an `ExactIndex`, with a warning, stands in
            where ScaNN cannot be loaded. Defaults to `False`: that is refused.
        **arguments: Arguments of the index, such as `metric`. A stand-in
            takes `metric` and `weights_hash` of them.

    Raises:
        UsageError: If there is no such index, or it cannot be loaded.

    Example:

    >>> make_index("exact", metric="euclidean").exact
    True
    """
    if name not in INDEXES:
        raise UsageError(
            f"An index must be one of {tuple(INDEXES)}. "
            f"Received: {name!r}. Choose one of them."
        )
    if name == "scann" and fall_back:
        try:
            import_scann()
        except UsageError as error:
            warnings.warn(f"Searching exactly. {error}", stacklevel=2)
            kept = ("metric", "weights_hash")
            return ExactIndex(
                **{key: arguments[key] for key in kept if key in arguments}
            )
    return INDEXES[name](**arguments)


def load_index(
    path: str | os.PathLike[str], weights_hash: str | None = None
) -> Index:
    """Reads a saved index of either kind.

    Args:
        path: The file of an `ExactIndex` or the folder of a `ScannIndex`.
        weights_hash: String, the hash of the weights that embed the queries.
            An index of other weights is refused. Defaults to `None`, which
            checks nothing.
    """
    index = ScannIndex if Path(path).is_dir() else ExactIndex
    return index.load(path, weights_hash)
