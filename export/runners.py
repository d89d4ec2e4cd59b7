"""Runs an artefact as a client would, whatever its format."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from keras_dml.console import without_native_output
from keras_dml.errors import UsageError
from keras_dml.export import litert, onnx, scann_ops
from keras_dml.export.artefact import read_manifest


@dataclasses.dataclass(frozen=True)
class Runner:
    """How to embed images with an artefact.

    Attributes:
        prepare: Function of float32 images `(n, height, width, channels)`
            with values in 0..255; returns what `embed` takes, such as uint8.
        embed: Function of a batch of these; returns float32 embeddings.
        search: Function of embeddings `(n, dim)` and `k` that returns ids and
            scores `(n, k)`; `None` where there is no index.
    """

    prepare: Callable[[np.ndarray], np.ndarray]
    embed: Callable[[np.ndarray], np.ndarray]
    search: (
        Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]] | None
    ) = None


def open_artefact(folder: str | Path, threads: int | None = None) -> Runner:
    """Opens an artefact of any format.

    Args:
        folder: An exported folder.
        threads: How many threads LiteRT and ONNX Runtime use. TensorFlow has
            one setting for the whole process. Defaults to `None`, as many as
            the machine has processors.

    Raises:
        RunError: The folder is not an artefact of ours.

    Example:

    ```python
    runner = open_artefact("export/litert-int8")
    embeddings = runner.embed(runner.prepare(images))
    ```
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    threads = threads or os.cpu_count() or 1
    return _OPENERS[manifest["format"]](folder, manifest, threads)


def _open_saved_model(folder, manifest, threads):
    import tensorflow as tf

    del threads
    index = manifest.get("index")
    if index is not None and index["kind"] == "scann":
        scann_ops.import_scann_ops()
    served = tf.saved_model.load(str(folder))

    def embed(batch):
        return served.serve(tf.constant(batch))["embedding"].numpy()

    def search(embeddings, k):
        found = served.neighbors_of_embedding(
            tf.constant(embeddings, tf.float32), tf.constant(k, tf.int32)
        )
        ids = found["ids"].numpy()
        if index["ids"] == "string":
            ids = np.char.decode(ids.astype("S"), "utf-8")
        return ids, found["scores"].numpy()

    return Runner(_as_float32, embed, None if index is None else search)


def _open_litert(folder, manifest, threads):
    from ai_edge_litert.interpreter import Interpreter

    with without_native_output():
        interpreter = Interpreter(
            str(folder / litert.FILE), num_threads=threads
        )
        run = interpreter.get_signature_runner("serve")
    image = manifest["image"]
    shape = (image["height"], image["width"], image["channels"])

    def embed(batch):
        # The interpreter takes whatever has as many axes as it likes, and
        # returns rows that mean nothing.
        _check_pixels(batch, shape)
        if manifest["dynamic_batch"]:
            return run(image=batch)["embedding"]
        return np.concatenate(
            [run(image=one[None])["embedding"] for one in batch]
        )

    return Runner(prepare=_as_uint8, embed=embed)


def _open_onnx(folder, manifest, threads):
    import onnxruntime

    del manifest
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(
        str(folder / onnx.FILE), options, providers=["CPUExecutionProvider"]
    )
    return Runner(
        prepare=_as_float32,
        embed=lambda batch: session.run(["embedding"], {"image": batch})[0],
    )


_OPENERS: dict[str, Callable[[Path, dict[str, Any], int], Runner]] = {
    "saved_model": _open_saved_model,
    "litert": _open_litert,
    "onnx": _open_onnx,
}


def _as_float32(images):
    return np.asarray(images, dtype="float32")


def _as_uint8(images):
    return np.rint(images).astype("uint8")


def _check_pixels(batch, shape):
    if batch.dtype != np.uint8 or batch.ndim != 4 or batch.shape[1:] != shape:
        raise UsageError(
            f"The artefact takes uint8 images of shape (n, {shape[0]}, "
            f"{shape[1]}, {shape[2]}). Received: dtype={batch.dtype}, "
            f"shape={batch.shape}"
        )
    if len(batch) == 0:
        raise UsageError("A batch must hold at least one image.")
