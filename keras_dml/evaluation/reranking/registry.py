"""Makes re-rankings by name."""

from keras_dml.checks import one_of
from keras_dml.evaluation.reranking.base import Reranking
from keras_dml.evaluation.reranking.k_reciprocal import KReciprocal
from keras_dml.evaluation.reranking.query_expansion import AlphaQueryExpansion

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
    kind = RERANKINGS[one_of("rerank", rerank, RERANKINGS)]
    return None if kind is None else kind()
