"""Export as a TensorFlow SavedModel."""

import csv
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_dml.data.decoding import MAX_PIXELS
from keras_dml.errors import UsageError
from keras_dml.export import scann_ops
from keras_dml.export.artefact import (
    has_unit_rows,
    replacing_folder,
    write_manifest,
)
from keras_dml.export.endpoints import make_endpoints
from keras_dml.export.references import References
from keras_dml.export.served_index import ServedIndex
from keras_dml.export.warm_up import example_requests, write_warm_up

LABELS = "references.csv"


def export_saved_model(
    embedder: keras.Model,
    path: str | Path,
    *,
    resize: int | None = None,
    squash: bool = False,
    references: References | None = None,
    max_pixels: int = MAX_PIXELS,
    metadata: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Writes a SavedModel that needs TensorFlow alone to answer.

    Endpoints, all with dict results:

    - `serve` (also `serving_default`): float32 images `(batch, height, width,
      channels)` with values in 0..255 to `{"embedding"}`.
    - `serve_uint8`: the same for uint8 images; one signature cannot take both
      types.
    - `serve_image_bytes`: `(batch,)` bytes of JPEG, PNG, GIF, BMP or WebP
      files of any size, grey and transparent ones included, to
      `{"embedding", "ok"}`. They are resized and cropped as in the
      evaluation. A file that cannot be decoded, or has more than
      `max_pixels`, gets zeros and `ok = False`.
    - `similarity`: float32 images "first" `(m, ...)` and "second" `(n, ...)`
      to `{"similarity", "pairs"}`: all cosines `(m, n)` and their number.

    With references:

    - `neighbors`: bytes of image files and int32 "k", one number or one for
      each file, to `{"ids", "scores", "ok"}`, see `ServedIndex.search`.
    - `neighbors_of_embedding`: the same for "embedding" `(batch, dim)`.

    Embeddings are those of `embedder`, under its dtype policy. The folder has
    a `manifest.json` with version, preprocessing and metadata, requests to
    warm TensorFlow Serving up, and with references `assets/references.csv`
    with the label of each id. Where the index is ScaNN's, its ops must be
    registered before the model is loaded, by importing
    `scann.scann_ops.py.scann_ops`.

    Args:
        embedder: Model of square images with values in 0..255.
        path: The folder to write; an earlier export there is replaced.
        resize: Shorter side in pixels to which the evaluation resizes before
            it crops. Defaults to the size of the embedder's images.
        squash: Whether the evaluation resizes both sides to it. Defaults to
            `False`.
        references: `References` to search, made by this embedder. They are
            compared by cosine where the embedder's rows have length 1, else
            by squared Euclidean distance. Defaults to `None`.
        max_pixels: Integer, the largest image file that is decoded. Defaults
            to 89,478,485, as in training.
        metadata: JSON-able facts for the manifest, such as recipe, metrics
            and labels. Defaults to none.
        force: Whether to replace a folder that is not an export. Defaults to
            `False`.

    Returns:
        The folder.

    Raises:
        UsageError: `path` holds something that is not an export, references
            have another dimension than the embedder, or ScaNN is asked for
            and cannot be loaded.

    Example:

    ```python
    export_saved_model(embedder, "export/saved_model")
    served = tf.saved_model.load("export/saved_model")
    served.serve(images)["embedding"]
    ```
    """
    path = Path(path)
    index = None if references is None else _index_of(embedder, references)
    endpoints = make_endpoints(
        embedder,
        resize=resize,
        squash=squash,
        max_pixels=max_pixels,
        index=index,
    )
    facts: dict[str, Any] = {"max_pixels": max_pixels}
    with (
        replacing_folder(path, force) as folder,
        tempfile.TemporaryDirectory() as made,
    ):
        assets = []
        if references is not None and index is not None:
            facts["index"] = {**index.facts, "labels": f"assets/{LABELS}"}
            assets.append(write_labels(Path(made), references))
        save_functions(
            folder, embedder, endpoints, parts=[index], assets=assets
        )
        write_warm_up(
            folder,
            example_requests(
                embedder.input_shape[1:], None if index is None else index.dim
            ),
        )
        write_manifest(
            folder,
            embedder,
            resize=resize,
            squash=squash,
            metadata=metadata,
            format="saved_model",
            endpoints=list(endpoints),
            **facts,
        )
    return path


def save_functions(
    folder: str | Path,
    model: keras.Model,
    functions: Mapping[str, Callable],
    parts: Sequence[tf.Module | None] = (),
    assets: Sequence[str | Path] = (),
) -> None:
    """Saves functions that use a model, without the model itself.

    Unlike `keras.export.ExportArchive`, which stores every weight twice.

    Args:
        folder: The SavedModel to write.
        model: The owner of the variables.
        functions: Dict of name to `tf.function` with an input signature. The
            first is also the default signature.
        parts: Further owners of variables. Defaults to none.
        assets: Files that are copied into its `assets`. Defaults to none.
    """
    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    module.parts = [part for part in parts if part is not None]
    module.assets = [tf.saved_model.Asset(str(asset)) for asset in assets]
    signatures: dict[str, Callable] = {}
    for name, function in functions.items():
        setattr(module, name, function)
        signatures.setdefault("serving_default", function)
        signatures[name] = function
    tf.saved_model.save(
        module,
        str(folder),
        signatures=signatures,
        options=tf.saved_model.SaveOptions(
            namespace_whitelist=[scann_ops.NAMESPACE]
        ),
    )


def write_labels(folder: Path, references: References) -> Path:
    """Writes which label each reference has, as a table of id and label."""
    path = folder / LABELS
    ids = references.embeddings.ids
    labels = references.labels or [""] * len(ids)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["id", "label"])
        writer.writerows(zip(ids, labels, strict=True))
    return path


def _index_of(embedder: keras.Model, references: References) -> ServedIndex:
    """The index of an embedder's references, compared as it is evaluated."""
    dim = embedder.output_shape[-1]
    received = references.embeddings.embeddings.shape[1]
    if received != dim:
        raise UsageError(
            f"`references` must have {dim} dimensions, as the embedder has. "
            f"Received: {received}. Embed the images with this embedder."
        )
    metric = "cosine" if has_unit_rows(embedder) else "euclidean"
    return ServedIndex(references, metric)
