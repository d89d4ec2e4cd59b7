"""Compares the index of a SavedModel with exact search."""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import RunError
from keras_dml.evaluation import ExactIndex
from keras_dml.evaluation.ids import IdTable
from keras_dml.evaluation.labels import Relevance, as_label_sets
from keras_dml.export.artifact import read_manifest
from keras_dml.export.formats import open_artifact
from keras_dml.export.latencies import TIMED_BATCHES, latencies

QUERIES = 1000
MOST_NEIGHBORS = 10
# float32 scores that differ by less than this count as ties.
_TIE = 1e-6


def index_parity(
    folder: str | Path, gallery: EmbeddingSet, seconds: float = 0.5
) -> dict[str, Any]:
    """Compares the index of a SavedModel with exact search.

    The queries are references of the index, drawn at random; a query never
    finds itself.

    Args:
        folder: A SavedModel with an index.
        gallery: The `EmbeddingSet` that the index was made of.
        seconds: Approximate time to measure each batch size. Defaults to
            `0.5`.

    Returns:
        Dict of

        - "queries": the number of queries;
        - "k": 10, or fewer if the index has or returns fewer neighbors;
        - "ann_recall@1" and, for another `k`, "ann_recall@k": the share of
          the exact nearest neighbors that the index finds;
        - "recall@1" and "recall@1_exact": how often the nearest neighbor has
          a label of the query, by the index and by exact search, over queries
          whose labels others have; `None` without such a query, or if every
          image has the same label;
        - "batch_1_ms" and "batch_32_ms": median milliseconds of a search.

    Raises:
        RunError: If the folder has no index.

    Example:

    ```python
    folder = export_saved_model(embedder, "m", with_index=True,
                                gallery=gallery)
    index_parity(folder, gallery)["ann_recall@10"]
    ```
    """
    search = open_artifact(folder).search
    if search is None:
        raise RunError(
            f"{folder} has no index. Export it with `with_index=True`."
        )
    facts = read_manifest(folder)["index"]
    generator = np.random.default_rng(0)
    rows = generator.permutation(len(gallery))[:QUERIES]
    queries, own = gallery.embeddings[rows], gallery.ids[rows]
    wanted = min(MOST_NEIGHBORS + 1, facts["max_k"], len(gallery))
    found, _ = search(queries, wanted)
    exact = ExactIndex(facts["metric"]).build(gallery.embeddings, gallery.ids)
    k = max(1, wanted - 1)
    # If only one neighbor can be found, it is the query itself.
    excluded = own if wanted > 1 else None
    if excluded is not None:
        found = _without(found, excluded)
    true, scores = exact.search(queries, 2 * k, excluded)
    result: dict[str, Any] = {"queries": len(rows), "k": k}
    for count in sorted({1, k}):
        result[f"ann_recall@{count}"] = _share(found, true, scores, count)
    for name, lists in (("recall@1", found), ("recall@1_exact", true)):
        result[name] = _hits(gallery, rows, lists[:, :1])
    calls = {
        f"batch_{size}_ms": functools.partial(
            search, np.resize(queries, (size, queries.shape[1])), wanted
        )
        for size in TIMED_BATCHES
    }
    return {**result, **latencies(calls, seconds)}


def _hits(gallery, rows, nearest):
    """Returns how often the nearest reference shares a label of the query."""
    labels, count = gallery.labels, len(gallery)
    if labels is None:
        return None
    relevance = Relevance.of(
        gallery.select(rows).labels, len(rows), labels, count
    )
    queries = relevance.counts(rows) > 0
    several = len(np.unique(as_label_sets(labels, count, "labels").values)) > 1
    if not (several and queries.any()):
        return None
    table = IdTable.of(gallery.ids, count)
    found = table.rows_of_lists(nearest, "found")
    hits = relevance.among(found) & (found >= 0)
    return float(np.mean(hits[queries]))


def _without(found, own):
    """Removes the query from its list, or the last place if it is missing."""
    kept = found != own[:, None]
    kept[kept.all(axis=1), -1] = False
    return found[kept].reshape(len(found), -1)


def _share(found, true, scores, k):
    """Returns the share of the `k` nearest that was found; ties count."""
    near = scores >= scores[:, k - 1 : k] - _TIE
    hits = [
        len(np.intersect1d(row[:k], nearest[close]))
        for row, nearest, close in zip(found, true, near, strict=True)
    ]
    return float(np.mean(np.minimum(hits, k)) / k)
