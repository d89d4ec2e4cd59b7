"""Does the index inside a SavedModel find what exact search finds?"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.errors import RunError
from keras_dml.evaluation import ExactIndex
from keras_dml.export.artefact import read_manifest
from keras_dml.export.latency import latencies
from keras_dml.export.references import References
from keras_dml.export.runners import open_artefact

QUERIES = 1000
MOST_NEIGHBOURS = 10
# Scores of float32 that agree so far are of neighbours equally near.
_TIE = 1e-6


def index_parity(
    folder: str | Path, references: References, seconds: float = 1.0
) -> dict[str, Any]:
    """Searches references for each other, without finding themselves.

    Args:
        folder: A SavedModel with an index.
        references: The `References` that were put into it.
        seconds: About how long to time each size of a batch. Defaults to
            `1.0`.

    Returns:
        Dict of "queries", how many references were searched for, drawn at
        random; "k", 10 or fewer where there are fewer; "ann_recall@1" and,
        with another `k`, "ann_recall@k", the share of the exact nearest that
        were found; "recall@1" and "recall@1_exact", how often the nearest is
        of the same label, by the index and by exact search, `None` without
        labels; "batch_1_ms" and
        "batch_32_ms", median milliseconds of a search.

    Raises:
        RunError: The folder has no index.

    Example:

    ```python
    folder = export_saved_model(embedder, "m", references=references)
    index_parity(folder, references)["ann_recall@10"]
    ```
    """
    search = open_artefact(folder).search
    if search is None:
        raise RunError(f"{folder} has no index. Export it with `--with-index`.")
    embeddings = references.embeddings
    generator = np.random.default_rng(0)
    rows = generator.permutation(len(embeddings))[:QUERIES]
    queries, own = embeddings.embeddings[rows], embeddings.ids[rows]
    wanted = min(MOST_NEIGHBOURS + 1, references.max_k, len(embeddings))
    found, _ = search(queries, wanted)
    metric = read_manifest(folder)["index"]["metric"]
    exact = ExactIndex(metric).build(embeddings.embeddings, embeddings.ids)
    # A single neighbour is the query itself.
    excluded = own if wanted > 1 else None
    k = max(1, wanted - 1)
    if excluded is not None:
        found = _without(found, excluded)
    true, scores = exact.search(queries, 2 * k, excluded)
    result: dict[str, Any] = {"queries": len(rows), "k": k}
    for count in sorted({1, k}):
        result[f"ann_recall@{count}"] = _share(found, true, scores, count)
    for name, lists in (("recall@1", found), ("recall@1_exact", true)):
        result[name] = _hits(references, lists[:, 0], own)
    for size in (1, 32):
        batch = np.resize(queries, (size, queries.shape[1]))
        call = functools.partial(search, batch, wanted)
        name = f"batch_{size}_ms"
        result[name] = latencies({name: call}, seconds)[name]
    return result


def index_drop(index: Mapping[str, Any], max_drop: float) -> str | None:
    """What an index loses, in words, if it is more than allowed.

    Args:
        index: Result of `index_parity`.
        max_drop: The largest drop of R@1 that is allowed.
    """
    found, exact = index["recall@1"], index["recall@1_exact"]
    if found is None or exact - found <= max_drop + 1e-9:
        return None
    return f"recall@1 {found:.4f} by its index, {exact:.4f} by exact search"


def _hits(references, nearest, own):
    """How often the nearest has the label of the query."""
    if references.labels is None:
        return None
    labels = dict(
        zip(references.embeddings.ids.tolist(), references.labels, strict=True)
    )
    pairs = zip(nearest.tolist(), own.tolist(), strict=True)
    return float(
        np.mean([labels.get(first) == labels[one] for first, one in pairs])
    )


def _without(found, own):
    """Lists without the query itself, or without their last place."""
    kept = found != own[:, None]
    kept[kept.all(axis=1), -1] = False
    return found[kept].reshape(len(found), -1)


def _share(found, true, scores, k):
    """Share of the `k` nearest that was found; ties are as good."""
    near = scores >= scores[:, k - 1 : k] - _TIE
    hits = [
        len(np.intersect1d(row[:k], nearest[close]))
        for row, nearest, close in zip(found, true, near, strict=True)
    ]
    return float(np.mean(np.minimum(hits, k)) / k)
