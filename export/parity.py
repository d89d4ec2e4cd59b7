"""Does an exported file retrieve as well as the model it was made of?"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_dml.console import without_native_output
from keras_dml.errors import UsageError
from keras_dml.evaluation import retrieval_metrics
from keras_dml.export.artefact import MANIFEST
from keras_dml.export.litert import FILE

REPORT = "parity.json"

Runner = Callable[[np.ndarray], np.ndarray]


def parity(
    embedder: keras.Model,
    artefacts: Mapping[str, str | Path],
    images: np.ndarray,
    labels: np.ndarray | None = None,
    batch_size: int = 32,
) -> list[dict[str, Any]]:
    """Compares exported models with the Keras embedder on real images.

    Args:
        embedder: The Keras model.
        artefacts: Dict of format, `"saved_model"` or `"litert"`, to folder.
        images: Array `(n, height, width, channels)` with values in 0..255,
            resized as in the evaluation. LiteRT gets them rounded to uint8,
            as a client would give them.
        labels: Integer array `(n,)`. Defaults to `None`: no retrieval
            metrics.
        batch_size: Images in a batch where an artefact takes more than one.
            Defaults to `32`.

    Returns:
        List of dicts, the embedder's own first: "artefact", "images",
        "megabytes", "mean_cosine" and "worst_cosine" to the embedder, and
        with labels "recall@1" and "map@r".

    Raises:
        UsageError: There are no images.

    Example:

    ```python
    folder = export_litert(embedder, "export/litert")
    rows = parity(embedder, {"litert": folder}, images, labels)
    ```
    """
    images = np.asarray(images, dtype="float32")
    if len(images) == 0:
        raise UsageError("`images` must hold at least one image to compare.")
    expected = _embed(embedder.predict_on_batch, images, batch_size)
    rows = [_row("embedder", 4 * embedder.count_params(), expected, expected)]
    results = [expected]
    for name, folder in artefacts.items():
        runner = RUNNERS[name](Path(folder))
        results.append(_embed(runner, images, batch_size))
        rows.append(_row(name, _bytes(Path(folder)), expected, results[-1]))
    if labels is not None:
        for row, embeddings in zip(rows, results, strict=True):
            metrics = retrieval_metrics(embeddings, labels, k=1)
            row.update({key: metrics[key] for key in ("recall@1", "map@r")})
    return rows


def _saved_model_runner(folder):
    served = tf.saved_model.load(str(folder))
    return lambda batch: served.serve(tf.constant(batch))["embedding"].numpy()


def _litert_runner(folder):
    from ai_edge_litert.interpreter import Interpreter

    with without_native_output():
        run = Interpreter(str(folder / FILE)).get_signature_runner("serve")

    def one_by_one(batch):
        pixels = np.rint(batch).astype("uint8")
        return np.concatenate(
            [run(image=image[None])["embedding"] for image in pixels]
        )

    return one_by_one


RUNNERS: dict[str, Callable[[Path], Runner]] = {
    "saved_model": _saved_model_runner,
    "litert": _litert_runner,
}


def _embed(run, images, batch_size):
    starts = range(0, len(images), batch_size)
    return np.concatenate(
        [run(images[start : start + batch_size]) for start in starts]
    )


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
    return sum(
        file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file() and file.name not in (MANIFEST, REPORT)
    )
