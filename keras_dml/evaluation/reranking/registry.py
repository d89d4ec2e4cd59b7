"""Makes re-rankings by name."""

from keras_dml.errors import UsageError
from keras_dml.evaluation.reranking.base import Reranking
from keras_dml.evaluation.reranking.k_reciprocal import KReciprocal
from keras_dml.evaluation.reranking.query_expansion import AlphaQueryExpansion
from keras_dml.naming import nearest

RERANKINGS: dict[str, type[Reranking] | None] = {
    "none": None,
    "query_expansion": AlphaQueryExpansion,
    "k_reciprocal": KReciprocal,
}


def as_reranking(rerank: str | Reranking) -> Reranking | None:
    """Makes a re-ranking by name, with its defaults; `None` for `"none"`.

    A `Reranking` is returned unchanged.

    Raises:
        UsageError: If the name is unknown.
    """
    if isinstance(rerank, Reranking):
        return rerank
    if rerank not in RERANKINGS:
        raise UsageError(
            f"`rerank` must be one of {', '.join(RERANKINGS)}. "
            f"Received: {rerank!r}. Nearest: {nearest(rerank, RERANKINGS)}."
        )
    kind = RERANKINGS[rerank]
    return None if kind is None else kind()
