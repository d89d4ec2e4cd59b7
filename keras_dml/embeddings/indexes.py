"""Search indexes by the names of the command line."""

from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.errors import UsageError
from keras_dml.evaluation import Index
from keras_dml.evaluation.indexes import INDEXES, make_index
from keras_dml.naming import nearest


def check_index(kind: str) -> None:
    """Refuses an unknown index.

    Raises:
        UsageError: If there is no index of this name.
    """
    if kind not in INDEXES:
        raise UsageError(
            f"`--index` must be one of {', '.join(INDEXES)}. "
            f"Received: {kind!r}. Nearest: {nearest(kind, INDEXES)}."
        )


def build_index(
    kind: str, references: EmbeddingSet, normalize: bool = True
) -> Index:
    """Builds an index of embeddings.

    Args:
        kind: `"exact"` or `"scann"`.
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
    check_index(kind)
    index = make_index(
        kind,
        metric="cosine" if normalize else "euclidean",
        weights_hash=references.weights_hash,
    )
    return index.build(references.embeddings, references.ids)
