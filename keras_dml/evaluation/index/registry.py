"""Search indexes by name, saved ones by their path.

Every module of this package that defines an `Index` is found: a new index is
one new file.
"""

import importlib
import os
import pkgutil
import warnings
from typing import Any

from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.errors import UsageError
from keras_dml.evaluation import index as package
from keras_dml.evaluation.index.base import Index
from keras_dml.naming import nearest

for _module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
    importlib.import_module(_module.name)
INDEXES: dict[str, type[Index]] = {
    kind.name: kind for kind in Index.__subclasses__()
}


def check_index(name: str) -> None:
    """Raises if the name of an index is unknown.

    Raises:
        UsageError: If there is no index of this name.
    """
    if name not in INDEXES:
        raise UsageError(
            f"`index` must be one of {', '.join(INDEXES)}. "
            f"Received: {name!r}. Nearest: {nearest(name, INDEXES)}."
        )


def make_index(
    name: str = "exact", *, fall_back: bool = False, **arguments: Any
) -> Index:
    """Makes an empty index.

    Args:
        name: `"exact"` or `"scann"`. Defaults to `"exact"`.
        fall_back: Boolean, whether an `ExactIndex`, with a warning, stands in
            where the index cannot be loaded. Defaults to `False`: raise.
        **arguments: Arguments of the index, such as `metric`. A stand-in
            takes `metric` and `weights_hash` of them.

    Raises:
        UsageError: If there is no such index, or it cannot be loaded.

    Example:

    >>> make_index("exact", metric="euclidean").exact
    True
    """
    check_index(name)
    try:
        INDEXES[name].check_available()
    except UsageError as error:
        if not fall_back:
            raise
        warnings.warn(f"Searching exactly. {error}", stacklevel=2)
        kept = {"metric", "weights_hash"} & arguments.keys()
        name, arguments = "exact", {key: arguments[key] for key in kept}
    return INDEXES[name](**arguments)


def build_index(
    name: str, references: EmbeddingSet, normalize: bool = True
) -> Index:
    """Builds an index of embeddings.

    Args:
        name: `"exact"` or `"scann"`.
        references: `EmbeddingSet`, what is to be found.
        normalize: Boolean, whether to compare by cosine, or by the Euclidean
            distance of the embeddings as they are. Defaults to `True`.

    Raises:
        UsageError: If the index is unknown or cannot be loaded here.

    Example:

    >>> pets = EmbeddingSet([[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> build_index("exact", pets).search([[2.0, 1.0]], k=1)[0]
    array([[0]])
    """
    index = make_index(
        name,
        metric="cosine" if normalize else "euclidean",
        weights_hash=references.weights_hash,
    )
    return index.build(references.embeddings, references.ids)


def load_index(
    path: str | os.PathLike[str], weights_hash: str | None = None
) -> Index:
    """Loads a saved index of any kind.

    Args:
        path: The file of an `ExactIndex` or the folder of a `ScannIndex`.
        weights_hash: String, the hash of the weights that embed the queries.
            An index of other weights is refused. Defaults to `None`, which
            checks nothing.
    """
    kinds = [kind for kind in INDEXES.values() if kind.recognizes(path)]
    return kinds[0].load(path, weights_hash)
