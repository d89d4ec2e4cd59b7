"""Exports to LiteRT (`.tflite`), for phones and other small devices."""

import contextlib
import dataclasses
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_dml.console import without_native_output
from keras_dml.errors import UsageError
from keras_dml.export.artifact import make_manifest
from keras_dml.export.formats import Format, Runner
from keras_dml.export.litert_conversion import convert, count_ops
from keras_dml.export.litert_metadata import add_metadata
from keras_dml.export.options import ExportOptions, References
from keras_dml.files import write_json
from keras_dml.models import float32_clone

FILE = "embedder.tflite"
ROWS_FILE = "references.bin"
NOTES_FILE = "references.json"


class LiteRT(Format):
    """Writes `embedder.tflite`, one artifact for each quantization."""

    name = "litert"
    title = "LiteRT"
    runs_on = "phones and small devices"
    options = ("quantize", "dynamic_batch", "references")
    # Version 0.1 named these files `gallery.bin` and `gallery.json`.
    notes = (ROWS_FILE, NOTES_FILE, "gallery.bin", "gallery.json")

    def check(self, options: ExportOptions) -> None:
        """Raises if `references` holds no images."""
        if options.references is True:
            raise UsageError(
                "`references` must be `References` where no run gives them. "
                "Received: references=True"
            )

    def artifacts(self, options: ExportOptions) -> dict[str, ExportOptions]:
        """Returns one artifact for each quantization."""
        artifacts = {}
        for quantize in options.quantize:
            name = self.name
            if quantize != "none":
                name += f"-{quantize}"
            if options.dynamic_batch:
                name += "-dynamic_batch"
            artifacts[name] = dataclasses.replace(options, quantize=quantize)
        return artifacts

    def write(
        self, embedder: keras.Model, folder: Path, options: ExportOptions
    ) -> dict[str, Any]:
        """Writes `embedder.tflite`, and the references next to it."""
        (quantize,) = options.quantize
        content = convert(
            float32_clone(embedder),
            quantize,
            options.dynamic_batch,
            options.calibration,
        )
        manifest = make_manifest(
            embedder,
            options,
            format=self.name,
            file=FILE,
            quantize=quantize,
            dynamic_batch=options.dynamic_batch,
            ops=count_ops(content),
        )
        (folder / FILE).write_bytes(add_metadata(content, manifest))
        if isinstance(options.references, References):
            runner = self.open(folder, manifest, threads=1)
            write_references(folder, manifest, runner, options.references)
        return manifest

    def open(
        self, folder: Path, manifest: Mapping[str, Any], threads: int
    ) -> Runner:
        """Opens the file with LiteRT's interpreter, or TensorFlow's."""
        with without_native_output():
            interpreter = _interpreter(folder / FILE, threads)
            run = interpreter.get_signature_runner("serve")
            image = manifest["image"]
            shape = (image["height"], image["width"], image["channels"])
            # The first call makes the delegate, which reports itself.
            run(image=np.zeros((1, *shape), "uint8"))

        def embed(batch):
            # The interpreter accepts wrong shapes and types, and then returns
            # meaningless rows.
            _check_pixels(batch, shape)
            if manifest["dynamic_batch"]:
                return run(image=batch)["embedding"]
            return np.concatenate(
                [run(image=one[None])["embedding"] for one in batch]
            )

        return Runner(lambda images: np.rint(images).astype("uint8"), embed)


def _interpreter(path, threads):
    """Opens a file with the runtime of devices where it is installed."""
    with contextlib.suppress(ImportError):
        from ai_edge_litert.interpreter import Interpreter

        return Interpreter(str(path), num_threads=threads)
    with warnings.catch_warnings():
        # TensorFlow's interpreter warns that it has moved to LiteRT.
        warnings.filterwarnings("ignore", message=r"\s*Warning: tf.lite.Int")
        return tf.lite.Interpreter(str(path), num_threads=threads)


def export_litert(
    embedder: keras.Model,
    path: str | Path,
    options: ExportOptions | None = None,
    **changes: Any,
) -> Path:
    """Writes `embedder.tflite` with the ops that are built into LiteRT.

    The input is one image, uint8 `(1, height, width, channels)`, RGB or gray,
    and the output a float32 embedding `(1, dim)`, with every quantization.
    The signature is "serve", its input "image", its output "embedding". The
    model casts the image, normalizes its values, and normalizes the embedding
    if the embedder does. The client resizes and crops, because LiteRT has no
    built-in op for antialiased resizing.

    Quantizations:

    - `"none"`: float32, for any dtype policy of the embedder.
    - `"float16"`: weights in float16, half the size; computes in float32.
    - `"dynamic_range"`: weights in int8; activations are quantized while the
      model runs.
    - `"int8"`: weights and activations in int8, with ranges measured on
      `calibration`. The division by the length stays in float32, so
      embeddings have length 1.

    The folder has a `manifest.json` with version, preprocessing and metadata.
    The `.tflite` file contains the same manifest, see `read_metadata`.

    Args:
        embedder: Model of images of a fixed size with values in 0..255.
        path: The folder to write; an earlier export there is replaced.
        options: `ExportOptions`. Defaults to `ExportOptions()`.
        **changes: Arguments of `ExportOptions` that override `options`:
            `quantize`, one of the quantizations, `dynamic_batch`,
            `calibration`, `references`, `resize`, `squash`, `metadata` or
            `force`.

    Returns:
        The folder.

    Raises:
        RunError: If the model has an op that is not built into LiteRT.
        UsageError: If the quantization is unknown, `calibration` is empty or
            holds images of another shape or type, or `path` holds something
            that is not an export.

    Example:

    ```python
    export_litert(embedder, "export/litert-int8", quantize="int8",
                  calibration=train_images[:200])
    interpreter = ai_edge_litert.interpreter.Interpreter(
        "export/litert-int8/embedder.tflite"
    )
    ```
    """
    return LiteRT().export(embedder, path, options, changes)


def write_references(
    folder: Path,
    manifest: Mapping[str, Any],
    runner: Runner,
    references: References,
) -> None:
    """Embeds references with the artifact, and writes them as int8 rows.

    The same quantized model embeds the queries on the device.
    `references.bin` holds the rows, one after the other. `references.json`
    holds their number as "rows", and "dim", "scale", "labels" and "ids". The
    cosine to a query `q` of length 1 is `scale * (rows @ q)`.

    Args:
        folder: The artifact.
        manifest: Its manifest.
        runner: The artifact, opened.
        references: `References`.

    Raises:
        UsageError: If the embeddings are not of length 1, there is no
            reference, or there is not one label and one id per image.
    """
    if not manifest["embedding"]["unit_length"]:
        raise UsageError(
            "`references` needs embeddings of length 1. Received: a model "
            "whose embeddings have any length. Leave it out, or train with "
            "`evaluation.normalize=true`."
        )
    parts = [
        runner.embed(runner.prepare(batch))
        for batch in references.batches
        if len(batch)
    ]
    if not parts:
        raise UsageError(
            "`references` must hold at least one image. Received: none. Leave "
            "it out, or pass `References` of the images to search."
        )
    embeddings = np.concatenate(parts)
    texts = {"labels": references.labels, "ids": references.ids}
    for name, column in texts.items():
        if len(column) != len(embeddings):
            raise UsageError(
                f"`{name}` must have one text per image. Received: "
                f"{len(column)} for {len(embeddings)} images."
            )
    scale = float(np.abs(embeddings).max()) / 127.0
    rows = np.rint(embeddings / scale).astype("int8")
    (folder / ROWS_FILE).write_bytes(rows.tobytes())
    numbers = {"rows": len(rows), "dim": rows.shape[1], "scale": scale}
    columns = {name: [*map(str, column)] for name, column in texts.items()}
    write_json(folder / NOTES_FILE, {**numbers, **columns})


def _check_pixels(batch, shape):
    if batch.dtype != np.uint8 or batch.ndim != 4 or batch.shape[1:] != shape:
        raise UsageError(
            f"The artifact takes uint8 images of shape (n, {shape[0]}, "
            f"{shape[1]}, {shape[2]}). Received: dtype={batch.dtype}, "
            f"shape={batch.shape}"
        )
    if len(batch) == 0:
        raise UsageError(
            "`batch` must hold at least one image. Received: none. Leave empty "
            "batches out."
        )
