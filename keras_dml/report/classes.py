"""The table of classes of a page."""

import dataclasses

import numpy as np

from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation import ClassTable
from keras_dml.evaluation.index.registry import build_index

METRICS = ("recall@1", "r_precision", "map@r")
MAX_ROWS = 500
QUERIES_AT_A_TIME = 4096


@dataclasses.dataclass(frozen=True)
class ClassRow:
    """One class: its means, and what its images are taken for.

    Args:
        name: String.
        num_queries: Integer.
        values: Tuple of the means of `METRICS`, `None` without a positive.
        taken_for: String, the other class that its queries find first most
            often, and how often.
    """

    name: str
    num_queries: int
    values: tuple[float | None, ...]
    taken_for: str


def class_rows(
    table: ClassTable, embeddings: EmbeddingSet, normalize: bool
) -> list[ClassRow]:
    """The classes, worst MAP@R first, at most 500.

    Args:
        table: `ClassTable` of the queries.
        embeddings: `EmbeddingSet` of queries and references.
        normalize: Whether embeddings are compared by their direction.
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
    """Per class, how often its queries find another class first."""
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
