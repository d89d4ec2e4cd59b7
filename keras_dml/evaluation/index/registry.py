"""Makes search indexes by name, and loads saved ones.

It imports every module of this package and so finds every `Index`. To add an
index, add one file.
"""

import importlib
import os
import pkgutil
from typing import Any

from keras_dml.checks import one_of
from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.evaluation import index as package
from keras_dml.evaluation.index.base import Index
from keras_dml.evaluation.index.spaces import metric_of

for _module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
    importlib.import_module(_module.name)
INDEXES: dict[str, type[Index]] = {
    kind.name: kind for kind in Index.__subclasses__()
}


def check_index(name: str) -> None:
    """Raises if an index cannot be made here.

    Raises:
        UsageError: If no index has this name, or its package is missing.
    """
    one_of("index", name, INDEXES)
    INDEXES[name].check_available()


def make_index(name: str = "exact", **arguments: Any) -> Index:
    """Makes an empty index.

    Args:
        name: `"exact"` or `"scann"`. Defaults to `"exact"`.
        **arguments: Arguments of the index, such as `metric`.

    Raises:
        UsageError: If no index has this name, or it cannot be loaded.

    Example:

    >>> make_index("exact", metric="euclidean").exact
    True
    """
    check_index(name)
    return INDEXES[name](**arguments)


def build_index(
    name: str, references: EmbeddingSet, normalize: bool = True
) -> Index:
    """Builds an index of embeddings.

    Args:
        name: `"exact"` or `"scann"`.
        references: `EmbeddingSet` to search.
        normalize: Boolean, whether to compare by cosine; otherwise by the
            Euclidean distance of the unchanged embeddings. Defaults to
            `True`.

    Raises:
        UsageError: If the index is unknown or cannot be loaded here.

    Example:

    >>> pets = EmbeddingSet([[1.0, 0.0], [0.0, 1.0]], ["cat", "dog"])
    >>> build_index("exact", pets).search([[2.0, 1.0]], k=1)[0]
    array([[0]])
    """
    index = make_index(
        name,
        metric=metric_of(normalize),
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
            Defaults to `None`, which checks nothing.

    Raises:
        UsageError: If other weights made the index.
    """
    kinds = [kind for kind in INDEXES.values() if kind.recognizes(path)]
    return kinds[0].load(path, weights_hash)
