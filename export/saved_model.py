"""Exports to a SavedModel, which runs with TensorFlow only."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import UsageError
from keras_dml.evaluation.index.spaces import metric_of
from keras_dml.export.artifact import has_unit_rows, make_manifest
from keras_dml.export.endpoints import make_endpoints
from keras_dml.export.formats import Format, Runner, as_float32
from keras_dml.export.options import OF_AN_INDEX, ExportOptions
from keras_dml.export.search_ops import SCANN_NAMESPACE, import_scann_ops
from keras_dml.export.served_index import ServedIndex
from keras_dml.export.warm_up import example_requests, write_warm_up
from keras_dml.files import csv_text, write_text
from keras_dml.models import fold_for_inference

LABELS = "references.csv"


class SavedModel(Format):
    """Writes a SavedModel with an endpoint for each kind of request."""

    name = "saved_model"
    title = "a SavedModel"
    runs_on = "servers"
    options = ("with_index", *OF_AN_INDEX, "max_pixels")

    def check(self, options: ExportOptions) -> None:
        """Raises if an index is requested without a gallery of embeddings."""
        if options.with_index and not isinstance(options.gallery, EmbeddingSet):
            raise UsageError(
                "`gallery` must be an `EmbeddingSet` made by this embedder. "
                f"Received: gallery={options.gallery!r}"
            )
        if options.with_index and options.index == "scann":
            import_scann_ops()

    def write(
        self, embedder: keras.Model, folder: Path, options: ExportOptions
    ) -> dict[str, Any]:
        """Writes the model, its index, and requests that warm up a server."""
        index = _index_of(embedder, options) if options.with_index else None
        faster = fold_for_inference(embedder, copies=True)
        endpoints = make_endpoints(faster, options, index)
        facts: dict[str, Any] = {"max_pixels": options.max_pixels}
        with tempfile.TemporaryDirectory() as made:
            assets = []
            if index is not None:
                facts["index"] = {**index.facts, "labels": f"assets/{LABELS}"}
                assets.append(write_labels(Path(made), options.gallery))
            save_functions(folder, faster, endpoints, [index], assets)
        dim = None if index is None else index.dim
        write_warm_up(folder, example_requests(embedder.input_shape[1:], dim))
        facts["endpoints"] = list(endpoints)
        return make_manifest(embedder, options, format=self.name, **facts)

    def open(
        self, folder: Path, manifest: Mapping[str, Any], threads: int
    ) -> Runner:
        """Loads the model; TensorFlow chooses its threads itself."""
        index = manifest.get("index", {})
        if index.get("kind") == "scann":
            import_scann_ops()
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

        return Runner(as_float32, embed, search if index else None)


def export_saved_model(
    embedder: keras.Model,
    path: str | Path,
    options: ExportOptions | None = None,
    **changes: Any,
) -> Path:
    """Writes a SavedModel that runs with TensorFlow only.

    All endpoints return dicts:

    - `serve` (also `serving_default`) maps float32 images `(batch, height,
      width, channels)` with values in 0..255 to `{"embedding"}`.
    - `serve_uint8` does the same for uint8 images, because one signature
      cannot take both types.
    - `serve_image_bytes` maps the bytes `(batch,)` of JPEG, PNG, GIF, BMP or
      WebP files of any size, including gray and transparent ones, to
      `{"embedding", "ok"}`. It resizes and crops as the evaluation does. A
      file that cannot be decoded, or has more than `max_pixels`, gets zeros
      and `ok = False`.
    - `similarity` maps float32 images "first" `(m, ...)` and "second"
      `(n, ...)` to `{"similarity", "pairs"}`: all cosines `(m, n)` and their
      number.

    With an index there are two more:

    - `neighbors` maps bytes of image files and int32 "k", one number or one
      for each file, to `{"ids", "labels", "scores", "ok"}`, see
      `ServedIndex.search`.
    - `neighbors_of_embedding` does the same for "embedding" `(batch, dim)`.

    The model computes the embeddings under the dtype policy of `embedder`;
    batch normalization is folded into the convolutions before it.
    The folder has a `manifest.json` with version, preprocessing and metadata,
    and requests that warm up TensorFlow Serving. With an index it also has
    `assets/references.csv` with the label of each id. To load a model with an
    index of ScaNN, first register ScaNN's ops: import
    `scann.scann_ops.py.scann_ops`.

    Args:
        embedder: Model of square images with values in 0..255.
        path: The folder to write; an earlier export there is replaced.
        options: `ExportOptions`. Defaults to `ExportOptions()`.
        **changes: Arguments of `ExportOptions` that override `options`:
            `with_index`, `gallery`, `index`, `max_k`, `max_pixels`, `resize`,
            `squash`, `metadata` or `force`. The index compares by cosine if
            the embedder's rows have length 1, else by squared Euclidean
            distance.

    Returns:
        The folder.

    Raises:
        UsageError: If `path` holds something that is not an export, the
            gallery has another dimension than the embedder, or ScaNN is
            requested and cannot be loaded.

    Example:

    ```python
    export_saved_model(embedder, "export/saved_model")
    served = tf.saved_model.load("export/saved_model")
    served.serve(images)["embedding"]
    ```
    """
    return SavedModel().export(embedder, path, options, changes)


def save_functions(
    folder: str | Path,
    model: keras.Model,
    functions: Mapping[str, Callable],
    parts: Sequence[tf.Module | None] = (),
    assets: Sequence[str | Path] = (),
) -> None:
    """Saves functions that use a model, without the model itself.

    `keras.export.ExportArchive` would store every weight twice.

    Args:
        folder: The SavedModel to write.
        model: The model whose variables the functions use.
        functions: Dict of name to `tf.function` with an input signature. The
            first is also the default signature.
        parts: Other modules whose variables the functions use. Defaults to
            none.
        assets: Files to copy into the `assets` of the SavedModel. Defaults to
            none.
    """
    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    module.parts = [part for part in parts if part is not None]
    module.assets = [tf.saved_model.Asset(str(asset)) for asset in assets]
    for name, function in functions.items():
        setattr(module, name, function)
    default = next(iter(functions.values()))
    signatures = {"serving_default": default, **functions}
    options = tf.saved_model.SaveOptions(namespace_whitelist=[SCANN_NAMESPACE])
    tf.saved_model.save(module, str(folder), signatures, options)


def write_labels(folder: Path, gallery: EmbeddingSet) -> Path:
    """Writes the id and label of each reference as a CSV file."""
    path = folder / LABELS
    rows = zip(gallery.ids, gallery.names.tolist(), strict=True)
    write_text(path, csv_text([("id", "label"), *rows]))
    return path


def _index_of(embedder: keras.Model, options: ExportOptions) -> ServedIndex:
    """Makes the index of the gallery, with the metric of the evaluation."""
    dim = embedder.output_shape[-1]
    received = options.gallery.embeddings.shape[1]
    if received != dim:
        raise UsageError(
            f"`gallery` must have {dim} dimensions, as the embedder has. "
            f"Received: {received}. Embed the images with this embedder."
        )
    return ServedIndex(
        options.gallery,
        metric_of(has_unit_rows(embedder)),
        options.index,
        options.max_k,
    )
