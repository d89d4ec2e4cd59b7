"""Collects the images that queries find."""

import dataclasses
from collections import Counter

import numpy as np

from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation import RetrievalResult
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.index.registry import build_index
from keras_dml.evaluation.labels import Relevance
from keras_dml.report.thumbnails import Thumbnails

NEIGHBORS = 8
TYPICAL = 12
WORST = 12
WORST_OF_A_CLASS = 2


@dataclasses.dataclass(frozen=True)
class Shown:
    """An image of the page.

    Args:
        uri: String, the image as a data URI.
        label: String, its class.
        id: String, its id.
        score: Float, its similarity to the query; `None` for the query.
        right: Boolean, whether it is of the query's class; `None` for the
            query.
    """

    uri: str
    label: str
    id: str
    score: float | None = None
    right: bool | None = None


@dataclasses.dataclass(frozen=True)
class QueryRow:
    """A query and the images that it finds, nearest first.

    Args:
        query: `Shown`.
        found: List of `Shown`.
        first_rank: Integer, the rank of the first image of its class; `None`
            for a lone query.
        map_at_r: Float, its value of MAP@R; `None` for a lone query.
    """

    query: Shown
    found: list[Shown]
    first_rank: int | None
    map_at_r: float | None


def typical_queries(
    embeddings: EmbeddingSet, seed: int = 0, count: int = TYPICAL
) -> np.ndarray:
    """Draws queries at random, from as many classes as possible.

    Returns:
        Int64 array of positions among `embeddings.queries`.
    """
    labels = embeddings.groups[embeddings.queries]
    order = np.random.default_rng(seed).permutation(len(labels))
    earlier = Counter[int]()
    rounds = []
    for label in labels[order].tolist():
        rounds.append(earlier[label])
        earlier[label] += 1
    return order[np.argsort(rounds, kind="stable")[:count]]


def worst_queries(
    embeddings: EmbeddingSet, result: RetrievalResult, count: int = WORST
) -> np.ndarray:
    """Selects the queries with the lowest MAP@R, at most two per class.

    Of queries with equal MAP@R the one that finds its class latest comes
    first. Queries with a MAP@R of 1 are never selected.

    Returns:
        Int64 array of positions among `embeddings.queries`.
    """
    labels = embeddings.groups[embeddings.queries]
    values, first = result.per_query["map@r"], result.per_query["mrr"]
    chosen: list[int] = []
    earlier = Counter[int]()
    for query in np.lexsort((first, values)).tolist():
        if not values[query] < 1 or len(chosen) == count:
            break
        if earlier[labels[query]] < WORST_OF_A_CLASS:
            earlier[labels[query]] += 1
            chosen.append(query)
    return np.array(chosen, np.int64)


def query_rows(
    queries: np.ndarray,
    embeddings: EmbeddingSet,
    result: RetrievalResult,
    thumbnails: Thumbnails,
    normalize: bool,
) -> list[QueryRow]:
    """Finds the nearest references of some queries.

    Args:
        queries: Positions among `embeddings.queries`.
        embeddings: `EmbeddingSet` of queries and references.
        result: `RetrievalResult` of its queries.
        thumbnails: `Thumbnails` of the same rows.
        normalize: Whether to compare embeddings by their direction.
    """
    if not len(queries):
        return []
    rows = embeddings.queries[queries]
    found, scores, right = nearest(embeddings, rows, NEIGHBORS, normalize)
    answers = []
    for query, row, others, values, same in zip(
        queries.tolist(),
        rows.tolist(),
        found.tolist(),
        scores.tolist(),
        right.tolist(),
        strict=True,
    ):
        neighbors = [
            shown(other, embeddings, thumbnails, score, is_same)
            for other, score, is_same in zip(others, values, same, strict=True)
            if np.isfinite(score)
        ]
        reciprocal = result.per_query["mrr"][query]
        first_rank = map_at_r = None
        if not np.isnan(reciprocal):
            first_rank = round(1 / reciprocal)
            map_at_r = float(result.per_query["map@r"][query])
        query_image = shown(row, embeddings, thumbnails)
        answers.append(QueryRow(query_image, neighbors, first_rank, map_at_r))
    return answers


def nearest(
    embeddings: EmbeddingSet, rows: np.ndarray, count: int, normalize: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finds the references nearest to some rows.

    Returns:
        Tuple of their rows, their scores and whether they share a label, arrays
        `(rows, count)`.
    """
    references = embeddings.select(embeddings.references)
    index = build_index("exact", references, normalize)
    found, scores = index.search(
        embeddings.embeddings[rows], count, exclude_ids=embeddings.ids[rows]
    )
    table = IdTable.of(embeddings.ids, len(embeddings))
    found = table.rows_of_lists(found, "found")
    labels = embeddings.labels
    relevance = Relevance.of(labels[rows], len(rows), labels, len(labels))
    return found, scores, relevance.among(found)


def shown(
    row: int,
    embeddings: EmbeddingSet,
    thumbnails: Thumbnails,
    score: float | None = None,
    right: bool | None = None,
) -> Shown:
    """Returns the image of a row with its class and id, see `Shown`."""
    return Shown(
        thumbnails.uri(row),
        str(embeddings.select(np.array([row])).names[0]),
        str(embeddings.ids[row]),
        score,
        right,
    )
