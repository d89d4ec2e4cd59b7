"""Compares the embeddings and retrieval of artifacts with the model's."""

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.errors import RunError, UsageError
from keras_dml.evaluation import retrieval_metrics
from keras_dml.export.artifact import MANIFEST, has_unit_rows, read_manifest
from keras_dml.export.formats import FORMATS, Runner, open_artifact
from keras_dml.export.latencies import TIMED_BATCHES, latencies
from keras_dml.models import forward_function

REPORT = "parity.json"
RETRIEVAL = ("recall@1", "map@r")


def parity(
    embedder: keras.Model,
    artifacts: Mapping[str, str | Path],
    images: np.ndarray,
    labels: np.ndarray | None = None,
    batch_size: int = 32,
    seconds: float = 0.5,
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """Compares exported models with the Keras embedder on real images.

    Args:
        embedder: The Keras model.
        artifacts: Dict of name to folder, of any format.
        images: Array `(n, height, width, channels)` with values in 0..255,
            resized as in the evaluation. LiteRT gets them rounded to uint8,
            as a client would give them.
        labels: Integer array `(n,)`. Defaults to `None`: no retrieval
            metrics. They compare by cosine if the embedder's rows have
            length 1, else by Euclidean distance, as an index does.
        batch_size: Number of images in a batch, for artifacts that take more
            than one. Defaults to `32`.
        seconds: Approximate time to measure each artifact, per batch size.
            Defaults to `0.5`.
        threads: Number of threads that LiteRT and ONNX Runtime use. Defaults
            to `None`, the number of processors of the machine.

    Returns:
        List of dicts, that of the embedder first: "artifact", "images",
        "megabytes", "mean_cosine" and "worst_cosine" to the embedder; with
        labels also "recall@1" and "map@r"; and "batch_1_ms" and
        "batch_32_ms", the median milliseconds of a batch of one and of 32
        images on this machine, measured for all artifacts in turns.

    Raises:
        UsageError: If there are no images.
        RunError: If a folder is not an artifact of keras-dml, or its
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
    forward = forward_function(embedder)
    own = Runner(lambda batch: batch, lambda batch: np.asarray(forward(batch)))
    runners = {"embedder": own}
    sizes = {"embedder": 4 * embedder.count_params()}
    for name, folder in artifacts.items():
        runners[name] = open_artifact(folder, threads)
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
            "artifact": name,
            "images": len(images),
            "megabytes": sizes[name] / 1e6,
            "mean_cosine": float(cosines.mean()),
            "worst_cosine": float(cosines.min()),
        }
        if labels is not None:
            metrics = retrieval_metrics(
                embeddings, labels, k=1, normalize=has_unit_rows(embedder)
            )
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
            row[f"batch_{size}_ms"] = timed[row["artifact"]]
    return rows


def describe_drops(
    report: Sequence[Mapping[str, Any]], max_drop: float | None
) -> str:
    """Describes where an artifact's retrieval drops by more than allowed.

    Args:
        report: The rows of the embedder and of the artifact, and the result
            of `index_parity` if the artifact has an index. Without labels
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
