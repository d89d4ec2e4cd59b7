"""Does an exported file retrieve as well as the model it was made of?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.errors import RunError, UsageError
from keras_dml.evaluation import retrieval_metrics
from keras_dml.export.artefact import MANIFEST
from keras_dml.export.gallery import GALLERY_FILES
from keras_dml.export.latency import latencies
from keras_dml.export.runners import Runner, open_artefact

REPORT = "parity.json"
RETRIEVAL = ("recall@1", "map@r")
TIMED_BATCHES = (1, 32)


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
        batch_size: Images in a batch where an artefact takes more than one.
            Defaults to `32`.
        seconds: About how long to time each artefact, per size of a batch.
            Defaults to `1.0`.
        threads: How many threads LiteRT and ONNX Runtime use. Defaults to
            `None`, as many as the machine has processors.

    Returns:
        List of dicts, the embedder's own first: "artefact", "images",
        "megabytes", "mean_cosine" and "worst_cosine" to the embedder, with
        labels "recall@1" and "map@r", and the median milliseconds of a batch
        of one and of 32 images on this machine, "batch_1_ms" and
        "batch_32_ms", all artefacts in turns.

    Raises:
        UsageError: There are no images.
        RunError: A folder is not an artefact of ours, or its embeddings are
            not finite.

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
    results = {
        name: _embed(runner, images, batch_size)
        for name, runner in runners.items()
    }
    _check_finite(results)
    expected = results["embedder"]
    rows = [
        _row(name, sizes[name], expected, actual)
        for name, actual in results.items()
    ]
    if labels is not None:
        for row in rows:
            embeddings = results[row["artefact"]]
            metrics = retrieval_metrics(embeddings, labels, k=1)
            row.update({key: metrics[key] for key in RETRIEVAL})
    _add_times(rows, runners, images, seconds)
    return rows


def retrieval_drops(
    rows: Sequence[Mapping[str, Any]], max_drop: float
) -> dict[str, str]:
    """Artefacts that retrieve worse than the embedder by more than allowed.

    Args:
        rows: Result of `parity`, with labels.
        max_drop: The largest drop of R@1 or MAP@R that is allowed.

    Returns:
        Dict of name to what dropped, in words.
    """
    drops = {}
    for row in rows[1:]:
        lost = [
            f"{key} {row[key]:.4f}, the embedder's {rows[0][key]:.4f}"
            for key in RETRIEVAL
            if rows[0][key] - row[key] > max_drop + 1e-9
        ]
        if lost:
            drops[row["artefact"]] = "; ".join(lost)
    return drops


def _embed(runner, images, batch_size):
    prepared = runner.prepare(images)
    starts = range(0, len(images), batch_size)
    return np.concatenate(
        [runner.embed(prepared[start : start + batch_size]) for start in starts]
    )


def _check_finite(results):
    for name, rows in results.items():
        if not np.isfinite(rows).all():
            raise RunError(
                f"The embeddings of {name!r} are not all finite on real "
                "images. Do not ship it; export in another format."
            )


def _add_times(rows, runners, images, seconds):
    """Adds the times of a batch of each size, all artefacts in turns."""
    for size in TIMED_BATCHES:
        batch = np.resize(images, (size, *images.shape[1:]))
        timed = latencies(
            {name: _call(runner, batch) for name, runner in runners.items()},
            seconds,
        )
        for row in rows:
            row[f"batch_{size}_ms"] = timed[row["artefact"]]


def _call(runner, batch):
    prepared = runner.prepare(batch)
    return lambda: runner.embed(prepared)


def _row(name, size, expected, actual):
    cosines = np.sum(_unit(expected) * _unit(actual), axis=1)
    return {
        "artefact": name,
        "images": len(actual),
        "megabytes": size / 1e6,
        "mean_cosine": float(cosines.mean()),
        "worst_cosine": float(cosines.min()),
    }


def _unit(rows):
    lengths = np.linalg.norm(rows.astype("float64"), axis=1, keepdims=True)
    return rows / np.maximum(lengths, 1e-12)


def _bytes(folder):
    """Size of the model's files, without our own notes beside them."""
    notes = (MANIFEST, REPORT, *GALLERY_FILES)
    return sum(
        file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file() and file.name not in notes
    )
