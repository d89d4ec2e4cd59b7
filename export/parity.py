"""Compares the embeddings and retrieval of artefacts with the model's."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import RunError, UsageError
from keras_dml.evaluation import ExactIndex, retrieval_metrics
from keras_dml.export.artefact import MANIFEST, read_manifest
from keras_dml.export.formats import FORMATS, Runner, open_artefact
from keras_dml.export.served_index import label_texts

REPORT = "parity.json"
RETRIEVAL = ("recall@1", "map@r")
TIMED_BATCHES = (1, 32)
FEWEST_ROUNDS = 3
MOST_ROUNDS = 100
QUERIES = 1000
MOST_NEIGHBORS = 10
# float32 scores that differ by less than this count as ties.
_TIE = 1e-6


def parity(
    embedder: keras.Model,
    artefacts: Mapping[str, str | Path],
    images: np.ndarray,
    labels: np.ndarray | None = None,
    batch_size: int = 32,
    seconds: float = 1.0,
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """Compares exported models with the Keras embedder on real images.

    Args:
        embedder: The Keras model.
        artefacts: Dict of name to folder, of any format.
        images: Array `(n, height, width, channels)` with values in 0..255,
            resized as in the evaluation. LiteRT gets them rounded to uint8,
            as a client would give them.
        labels: Integer array `(n,)`. Defaults to `None`: no retrieval
            metrics.
        batch_size: Number of images in a batch, for artefacts that take more
            than one. Defaults to `32`.
        seconds: Approximate time to measure each artefact, per batch size.
            Defaults to `1.0`.
        threads: Number of threads that LiteRT and ONNX Runtime use. Defaults
            to `None`, the number of processors of the machine.

    Returns:
        List of dicts, that of the embedder first: "artefact", "images",
        "megabytes", "mean_cosine" and "worst_cosine" to the embedder; with
        labels also "recall@1" and "map@r"; and "batch_1_ms" and
        "batch_32_ms", the median milliseconds of a batch of one and of 32
        images on this machine, measured for all artefacts in turns.

    Raises:
        UsageError: If there are no images.
        RunError: If a folder is not an artefact of keras-dml, or its
            embeddings are not finite.

    Example:

    ```python
    folder = export_litert(embedder, "export/litert")
    rows = parity(embedder, {"litert": folder}, images, labels)
    ```
    """
    images = np.asarray(images, dtype="float32")
    if len(images) == 0:
        raise UsageError("`images` must hold at least one image to compare.")
    runners = {"embedder": Runner(lambda x: x, embedder.predict_on_batch)}
    sizes = {"embedder": 4 * embedder.count_params()}
    for name, folder in artefacts.items():
        runners[name] = open_artefact(folder, threads)
        sizes[name] = _bytes(Path(folder))
    embedded = {
        name: _embed(runner, images, batch_size)
        for name, runner in runners.items()
    }
    expected = _unit(embedded["embedder"])
    rows: list[dict[str, Any]] = []
    for name, embeddings in embedded.items():
        if not np.isfinite(embeddings).all():
            raise RunError(
                f"The embeddings of {name!r} are not all finite on real "
                "images. Do not ship it; export in another format."
            )
        cosines = np.sum(expected * _unit(embeddings), axis=1)
        row = {
            "artefact": name,
            "images": len(images),
            "megabytes": sizes[name] / 1e6,
            "mean_cosine": float(cosines.mean()),
            "worst_cosine": float(cosines.min()),
        }
        if labels is not None:
            metrics = retrieval_metrics(embeddings, labels, k=1)
            row.update({key: metrics[key] for key in RETRIEVAL})
        rows.append(row)
    for size in TIMED_BATCHES:
        batch = np.resize(images, (size, *images.shape[1:]))
        calls = {
            name: functools.partial(runner.embed, runner.prepare(batch))
            for name, runner in runners.items()
        }
        timed = latencies(calls, seconds)
        for row in rows:
            row[f"batch_{size}_ms"] = timed[row["artefact"]]
    return rows


def describe_drops(
    report: Sequence[Mapping[str, Any]], max_drop: float | None
) -> str:
    """Describes where an artefact's retrieval drops by more than allowed.

    Args:
        report: The rows of the embedder and of the artefact, and the result
            of `index_parity` if the artefact has an index. Without labels
            nothing drops.
        max_drop: The largest allowed drop of R@1 or MAP@R; `None` for no
            limit.

    Returns:
        The drops, `""` if all are allowed.
    """
    if max_drop is None:
        return ""
    embedder, row, *indexes = report
    pairs = {key: (row[key], embedder[key]) for key in RETRIEVAL if key in row}
    for index in indexes:
        if index["recall@1"] is not None:
            exact = index["recall@1_exact"]
            pairs["recall@1 of its index"] = index["recall@1"], exact
    return "; ".join(
        f"{name} {found:.4f} instead of {expected:.4f}"
        for name, (found, expected) in pairs.items()
        if expected - found > max_drop + 1e-9
    )


def index_parity(
    folder: str | Path, gallery: EmbeddingSet, seconds: float = 1.0
) -> dict[str, Any]:
    """Compares the index of a SavedModel with exact search.

    The queries are references of the index, drawn at random; a query never
    finds itself.

    Args:
        folder: A SavedModel with an index.
        gallery: The `EmbeddingSet` that the index was made of.
        seconds: Approximate time to measure each batch size. Defaults to
            `1.0`.

    Returns:
        Dict of

        - "queries": the number of queries;
        - "k": 10, or fewer if the index has or returns fewer neighbors;
        - "ann_recall@1" and, for another `k`, "ann_recall@k": the share of
          the exact nearest neighbors that the index finds;
        - "recall@1" and "recall@1_exact": how often the nearest neighbor has
          the label of the query, by the index and by exact search; `None`
          without labels;
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
    search = open_artefact(folder).search
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
        result[name] = _hits(gallery, lists[:, 0], own)
    calls = {
        f"batch_{size}_ms": functools.partial(
            search, np.resize(queries, (size, queries.shape[1])), wanted
        )
        for size in TIMED_BATCHES
    }
    return {**result, **latencies(calls, seconds)}


def latencies(
    calls: Mapping[str, Callable[[], object]], seconds: float = 1.0
) -> dict[str, float]:
    """Measures the median time of each call, in turns.

    The turns spread the other load of the machine evenly over all calls. Each
    function is called once before, to warm up.

    Args:
        calls: Dict of name to function.
        seconds: Approximate time to measure, per call. At least 3 and at most
            100 rounds are measured. Defaults to `1.0`.

    Returns:
        Dict of name to milliseconds.

    Example:

    >>> sorted(latencies({"a": lambda: 1, "b": lambda: 2}, seconds=0.01))
    ['a', 'b']
    """
    for call in calls.values():
        call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    start = time.perf_counter()
    for done in range(MOST_ROUNDS):
        passed = time.perf_counter() - start
        if done >= FEWEST_ROUNDS and passed > seconds * len(calls):
            break
        for name, call in calls.items():
            before = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - before)
    return {name: 1e3 * float(np.median(row)) for name, row in times.items()}


def _embed(runner, images, batch_size):
    prepared = runner.prepare(images)
    starts = range(0, len(images), batch_size)
    return np.concatenate(
        [runner.embed(prepared[start : start + batch_size]) for start in starts]
    )


def _unit(rows):
    lengths = np.linalg.norm(rows.astype("float64"), axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-12)


def _bytes(folder):
    """Returns the size of the model's files, without manifest and notes."""
    format_notes = FORMATS[read_manifest(folder)["format"]].notes
    notes = (MANIFEST, REPORT, *format_notes)
    return sum(
        file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file() and file.name not in notes
    )


def _hits(gallery, nearest, own):
    """Returns how often the nearest reference has the label of the query."""
    texts = label_texts(gallery)
    if texts is None:
        return None
    labels = dict(zip(gallery.ids.tolist(), texts, strict=True))
    pairs = zip(nearest.tolist(), own.tolist(), strict=True)
    return float(
        np.mean([labels.get(first) == labels[one] for first, one in pairs])
    )


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
