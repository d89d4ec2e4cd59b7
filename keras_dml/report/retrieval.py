"""Collects the images that queries find, and the table of classes."""

import dataclasses

import numpy as np

from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation import ClassTable, RetrievalResult
from keras_dml.evaluation.index.registry import build_index
from keras_dml.report.thumbnails import Thumbnails

NEIGHBORS = 8
TYPICAL = 12
WORST = 12
WORST_OF_A_CLASS = 2
METRICS = ("recall@1", "r_precision", "map@r")
MAX_ROWS = 500
QUERIES_AT_A_TIME = 4096


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
    labels = embeddings.labels[embeddings.queries]
    order = np.random.default_rng(seed).permutation(len(labels))
    drawn: list[tuple[int, int, int]] = []
    earlier = dict.fromkeys(labels.tolist(), 0)
    for query in order.tolist():
        drawn.append((earlier[labels[query]], len(drawn), query))
        earlier[labels[query]] += 1
    return np.array([query for _, _, query in sorted(drawn)[:count]], np.int64)


def worst_queries(
    embeddings: EmbeddingSet, result: RetrievalResult, count: int = WORST
) -> np.ndarray:
    """Selects the queries with the lowest MAP@R, at most two per class.

    Of queries with equal MAP@R the one that finds its class latest comes
    first. Queries with a MAP@R of 1 are never selected.

    Returns:
        Int64 array of positions among `embeddings.queries`.
    """
    labels = embeddings.labels[embeddings.queries]
    values, first = result.per_query["map@r"], result.per_query["mrr"]
    chosen: list[int] = []
    earlier = dict.fromkeys(labels.tolist(), 0)
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
    references = embeddings.references
    index = build_index("exact", embeddings.select(references), normalize)
    found, scores = index.search(
        embeddings.embeddings[rows],
        NEIGHBORS,
        exclude_ids=embeddings.ids[rows],
    )
    names = embeddings.names
    row_of = {embeddings.ids[row]: row for row in references.tolist()}

    def show(row, score=None, right=None) -> Shown:
        return Shown(
            thumbnails.uri(row),
            str(names[row]),
            str(embeddings.ids[row]),
            score,
            right,
        )

    answers = []
    for query, row, ids, values in zip(
        queries.tolist(), rows.tolist(), found, scores.tolist(), strict=True
    ):
        neighbors = []
        for identity, score in zip(ids, values, strict=True):
            if np.isfinite(score):
                other = row_of[identity]
                right = bool(embeddings.labels[other] == embeddings.labels[row])
                neighbors.append(show(other, score, right))
        reciprocal = result.per_query["mrr"][query]
        lone = bool(np.isnan(reciprocal))
        answers.append(
            QueryRow(
                show(row),
                neighbors,
                None if lone else round(1 / reciprocal),
                None if lone else float(result.per_query["map@r"][query]),
            )
        )
    return answers


@dataclasses.dataclass(frozen=True)
class ClassRow:
    """A class, its means, and the class that it is most often taken for.

    Args:
        name: String.
        num_queries: Integer.
        values: Tuple of the means of `METRICS`, `None` without a positive.
        taken_for: String, the other class that its queries most often find
            first, and how often.
    """

    name: str
    num_queries: int
    values: tuple[float | None, ...]
    taken_for: str


def class_rows(
    table: ClassTable, embeddings: EmbeddingSet, normalize: bool
) -> list[ClassRow]:
    """Lists the classes, worst MAP@R first, at most 500.

    Args:
        table: `ClassTable` of the queries.
        embeddings: `EmbeddingSet` of queries and references.
        normalize: Whether to compare embeddings by their direction.
    """
    confused = _taken_for(embeddings, normalize)
    names = dict(zip(embeddings.labels.tolist(), embeddings.names, strict=True))
    return [
        ClassRow(
            str(names[row["label"]]),
            row["num_queries"],
            tuple(row[metric] for metric in METRICS),
            _in_words(confused.get(row["label"], {}), names),
        )
        for row in table.sorted_by("map@r").rows()[:MAX_ROWS]
    ]


def _taken_for(
    embeddings: EmbeddingSet, normalize: bool
) -> dict[int, dict[int, int]]:
    """Counts per class how often its queries find another class first."""
    rows, references = embeddings.queries, embeddings.references
    labels = embeddings.labels[references]
    index = build_index("exact", embeddings.select(references), normalize)
    ids = embeddings.ids[references]
    order = np.argsort(ids, kind="stable")
    counts: dict[int, dict[int, int]] = {}
    for start in range(0, len(rows), QUERIES_AT_A_TIME):
        block = rows[start : start + QUERIES_AT_A_TIME]
        found, scores = index.search(
            embeddings.embeddings[block], 1, exclude_ids=embeddings.ids[block]
        )
        nearest = labels[order[np.searchsorted(ids[order], found[:, 0])]]
        own = embeddings.labels[block]
        wrong = (nearest != own) & np.isfinite(scores[:, 0])
        for label, other in zip(
            own[wrong].tolist(), nearest[wrong].tolist(), strict=True
        ):
            of_class = counts.setdefault(label, {})
            of_class[other] = of_class.get(other, 0) + 1
    return counts


def _in_words(counts: dict[int, int], names: dict[int, str]) -> str:
    if not counts:
        return ""
    other = max(counts, key=lambda label: (counts[label], -label))
    return f"{names[other]} ({counts[other]})"
