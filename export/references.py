"""The references that a SavedModel searches by itself."""

import dataclasses

import numpy as np

from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.scann_searcher import HASHING_FROM
from keras_dml.naming import nearest

INDEXES = ("auto", "exact", "scann")
MAX_K = 100


@dataclasses.dataclass(frozen=True, eq=False)
class References:
    """Embedded images that go into a SavedModel, to be found.

    Args:
        embeddings: `EmbeddingSet`, made by the embedder that is exported. All
            of its rows are found; roles do not matter.
        index: `"exact"`, in plain TensorFlow; `"scann"`, approximate, which
            needs ScaNN wherever the model is loaded; or `"auto"`, which is
            exact below 20,000 references as ScaNN's own rule is, and ScaNN
            from there on. Defaults to `"auto"`.
        max_k: Integer, the most neighbours that a request may ask for.
            Defaults to `100`.

    Raises:
        UsageError: The index is unknown or `max_k` is not positive.

    Example:

    >>> pets = EmbeddingSet([[1.0, 0.0], [0.9, 0.1]], ["cat", "cat"])
    >>> References(pets).kind
    'exact'
    """

    embeddings: EmbeddingSet
    index: str = "auto"
    max_k: int = MAX_K

    def __post_init__(self) -> None:
        check_index(self.index, self.max_k)

    @property
    def kind(self) -> str:
        """`"exact"` or `"scann"`."""
        if self.index != "auto":
            return self.index
        return "exact" if len(self.embeddings) < HASHING_FROM else "scann"

    @property
    def labels(self) -> list[str] | None:
        """The label of each row in words, `None` where none is known."""
        labels = self.embeddings.labels
        if labels is None:
            return None
        if labels.ndim == 1:
            return self.embeddings.names.tolist()
        return [" ".join(map(str, np.flatnonzero(row))) for row in labels]


def check_index(index: str, max_k: int) -> None:
    """Refuses an index or a number of neighbours that cannot be.

    Raises:
        UsageError: The index is unknown or `max_k` is not positive.
    """
    if index not in INDEXES:
        raise UsageError(
            f"`--index` must be one of {', '.join(INDEXES)}. "
            f"Received: {index!r}. Nearest: "
            f"{nearest(index, INDEXES)}."
        )
    if max_k < 1:
        raise UsageError(
            "`--max-k` must be at least 1. "
            f"Received: {max_k}. Requests ask for that many at most."
        )
