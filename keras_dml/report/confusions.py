"""Finds which classes are taken for which, and lists the classes."""

import dataclasses
import itertools
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation import ClassTable
from keras_dml.evaluation.labels import as_label_sets
from keras_dml.evaluation.measured import CLASS_METRICS
from keras_dml.report.retrieval import nearest

MAX_ROWS = 500


@dataclasses.dataclass(frozen=True)
class Confusion:
    """A class whose queries find an image of another class first.

    Args:
        label: Integer, the class of the queries.
        other: Integer, the class that they find.
        count: Integer, the number of these queries.
        of: Integer, the number of queries of the class.
        query: Integer, the row of the query with the highest score.
        found: Integer, the row of the image that it finds first.
    """

    label: int
    other: int
    count: int
    of: int
    query: int
    found: int


def confusions(embeddings: EmbeddingSet, normalize: bool) -> list[Confusion]:
    """Lists which classes are taken for which others, most often first.

    Args:
        embeddings: `EmbeddingSet` of queries and references.
        normalize: Whether to compare embeddings by their direction.
    """
    rows, labels = embeddings.queries, embeddings.labels
    found, scores, right = (
        column[:, 0] for column in nearest(embeddings, rows, 1, normalize)
    )
    sets = as_label_sets(labels, len(labels), "labels")
    own = np.split(
        sets.values, np.searchsorted(sets.owners, range(1, len(labels)))
    )
    sizes = Counter(np.concatenate([own[row] for row in rows]).tolist())
    queries = defaultdict(list)
    for query in np.flatnonzero(~right & np.isfinite(scores)).tolist():
        # Each label of an image is taken for each of the other's.
        for pair in itertools.product(
            own[rows[query]].tolist(), own[found[query]].tolist()
        ):
            queries[pair].append(query)
    listed = []
    for (label, other), of_pair in queries.items():
        surest = of_pair[int(np.argmax(scores[of_pair]))]
        images = int(rows[surest]), int(found[surest])
        listed.append(
            Confusion(label, other, len(of_pair), sizes[label], *images)
        )
    return sorted(listed, key=lambda one: (-one.count, one.label, one.other))


@dataclasses.dataclass(frozen=True)
class ClassRow:
    """A class, its means, and the class that it is most often taken for.

    Args:
        name: String.
        num_queries: Integer.
        values: Tuple of the means of `CLASS_METRICS`, `None` without a
            positive.
        taken_for: String, the other class that its queries most often find
            first, and how often.
    """

    name: str
    num_queries: int
    values: tuple[float | None, ...]
    taken_for: str


def class_rows(
    table: ClassTable, embeddings: EmbeddingSet, confused: Sequence[Confusion]
) -> list[ClassRow]:
    """Lists the classes, worst MAP@R first, at most 500.

    Args:
        table: `ClassTable` of the queries.
        embeddings: `EmbeddingSet` of queries and references.
        confused: The confusions, most frequent first.
    """
    names = embeddings.class_names
    assert names is not None
    taken_for: dict[int, str] = {}
    for one in confused:
        taken_for.setdefault(one.label, f"{names[one.other]} ({one.count})")
    return [
        ClassRow(
            str(names[row["label"]]),
            row["num_queries"],
            tuple(row[metric] for metric in CLASS_METRICS),
            taken_for.get(row["label"], ""),
        )
        for row in table.sorted_by("map@r").rows()[:MAX_ROWS]
    ]
