"""Measures the retrieval of embeddings, with any index."""

from collections.abc import Iterable, Mapping
from typing import Any

from keras_dml.console import progress_bar
from keras_dml.embeddings.embedding_set import EmbeddingSet
from keras_dml.embeddings.indexes import build_index, check_index
from keras_dml.embeddings.measured import Measured
from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    AlphaQueryExpansion,
    KReciprocal,
    evaluate_index,
    evaluate_retrieval,
)
from keras_dml.naming import nearest

RERANKINGS = {
    "none": None,
    "query_expansion": AlphaQueryExpansion,
    "k_reciprocal": KReciprocal,
}


def check_choices(index: str, rerank: str) -> None:
    """Refuses an unknown index or re-ranking.

    Raises:
        UsageError: If there is none of this name.
    """
    check_index(index)
    if rerank not in RERANKINGS:
        raise UsageError(
            f"`--rerank` must be one of {', '.join(RERANKINGS)}. "
            f"Received: {rerank!r}. Nearest: {nearest(rerank, RERANKINGS)}."
        )


def evaluate_embeddings(
    embeddings: EmbeddingSet,
    *,
    k: Iterable[int] = (1, 2, 4, 8),
    normalize: bool = True,
    index: str = "exact",
    clustering: bool = False,
    cluster_arguments: Mapping[str, Any] | None = None,
    intervals: bool = False,
    per_class: bool = False,
    rerank: str = "none",
    seed: int = 0,
) -> Measured:
    """Measures how well queries find the references of their class.

    Args:
        embeddings: `EmbeddingSet`. Its queries search its gallery, or without
            roles all other rows.
        k: Ranks of Recall@K. Defaults to `(1, 2, 4, 8)`.
        normalize: Boolean, whether to compare by cosine, or by the Euclidean
            distance of the embeddings as they are. Defaults to `True`.
        index: `"exact"`, or `"scann"` to measure it beside exact search.
            Defaults to `"exact"`.
        clustering: Boolean, whether to cluster as well. Defaults to `False`.
        cluster_arguments: Dict of arguments of the clustering. Defaults to
            `None`.
        intervals: Boolean, whether to add 95 % intervals over classes.
            Defaults to `False`.
        per_class: Boolean, whether to add a table of classes. Defaults to
            `False`.
        rerank: `"none"`, `"query_expansion"` or `"k_reciprocal"`. Defaults to
            `"none"`.
        seed: Integer, of clustering and intervals. Defaults to `0`.

    Returns:
        `Measured`.

    Raises:
        UsageError: If a name is unknown, the images have no labels, or no
            query has a positive.

    Example:

    >>> rows = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> pets = EmbeddingSet(rows, ["cat", "cat", "dog", "dog"])
    >>> evaluate_embeddings(pets, k=(1,)).flat()["recall@1"]
    1.0
    """
    check_choices(index, rerank)
    if embeddings.labels is None:
        raise UsageError(
            "The images must have `labels` to be evaluated. Received: "
            "embeddings without. Save their classes as `labels`."
        )
    kind = RERANKINGS[rerank]
    queries = embeddings.select(embeddings.queries)
    references = embeddings.select(embeddings.references)
    arguments: dict[str, Any] = {}
    if embeddings.has_gallery:
        arguments = {
            "reference_embeddings": references.embeddings,
            "reference_labels": references.labels,
            "reference_ids": references.ids,
        }
    ks = tuple(k)
    with progress_bar() as progress:
        task = progress.add_task(
            "comparing all images",
            total=len(queries.embeddings) * (1 if kind is None else 2),
            note="",
        )
        result = evaluate_retrieval(
            queries.embeddings,
            queries.labels,
            query_ids=queries.ids,
            k=ks,
            normalize=normalize,
            clustering=clustering,
            cluster_arguments=cluster_arguments,
            intervals="classes" if intervals else None,
            per_class=per_class,
            reranking=None if kind is None else kind(),
            seed=seed,
            progress=lambda count: progress.advance(task, count),
            **arguments,
        )
        approximation = None
        if index != "exact":
            progress.reset(
                task, description=f"searching with {index}", total=None
            )
            approximation = evaluate_index(
                build_index(index, references, normalize),
                queries.embeddings,
                queries.labels,
                references.labels,
                query_ids=queries.ids,
                k=ks,
            )
    return Measured(result, approximation, rerank, _class_names(queries))


def _class_names(queries: EmbeddingSet) -> dict[Any, str]:
    if queries.class_names is None:
        return {}
    return dict(enumerate(queries.class_names.tolist()))
