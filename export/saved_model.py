"""Export as a TensorFlow SavedModel."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_dml.export.artefact import replacing_folder, write_manifest
from keras_dml.export.serving import embed_image_bytes


def export_saved_model(
    embedder: keras.Model,
    path: str | Path,
    *,
    resize: int | None = None,
    squash: bool = False,
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
      evaluation. A file that cannot be decoded gets zeros and `ok = False`.

    Embeddings are those of `embedder`, under its dtype policy. The folder has
    a `manifest.json` with version, preprocessing and metadata.

    Args:
        embedder: Model of square images with values in 0..255.
        path: The folder to write; an earlier export there is replaced.
        resize: Shorter side in pixels to which the evaluation resizes before
            it crops. Defaults to the size of the embedder's images.
        squash: Whether the evaluation resizes both sides to it. Defaults to
            `False`.
        metadata: JSON-able facts for the manifest, such as recipe, metrics
            and labels. Defaults to none.
        force: Whether to replace a folder that is not an export. Defaults to
            `False`.

    Returns:
        The folder.

    Raises:
        UsageError: `path` holds something that is not an export.

    Example:

    ```python
    export_saved_model(embedder, "export/saved_model")
    served = tf.saved_model.load("export/saved_model")
    served.serve(images)["embedding"]
    ```
    """
    path = Path(path)
    image_shape = embedder.input_shape[1:]
    shape = (None, *image_shape)

    # One function for all endpoints, so that its graph is stored once.
    @tf.function(input_signature=[tf.TensorSpec(shape, tf.float32)])
    def embed(images):
        return embedder(images, training=False)

    def serve(image):
        return {"embedding": embed(tf.cast(image, tf.float32))}

    def serve_image_bytes(image_bytes):
        return embed_image_bytes(
            embed, image_bytes, image_shape, resize, squash
        )

    endpoints = {
        "serve": tf.function(
            serve, [tf.TensorSpec(shape, tf.float32, name="image")]
        ),
        "serve_uint8": tf.function(
            serve, [tf.TensorSpec(shape, tf.uint8, name="image")]
        ),
        "serve_image_bytes": tf.function(
            serve_image_bytes,
            [tf.TensorSpec((None,), tf.string, name="image_bytes")],
        ),
    }
    with replacing_folder(path, force) as folder:
        save_functions(folder, embedder, endpoints)
        write_manifest(
            folder,
            embedder,
            resize=resize,
            squash=squash,
            metadata=metadata,
            format="saved_model",
            endpoints=list(endpoints),
        )
    return path


def save_functions(
    folder: str | Path,
    model: keras.Model,
    functions: Mapping[str, Callable],
) -> None:
    """Saves functions that use a model, without the model itself.

    Unlike `keras.export.ExportArchive`, which stores every weight twice.

    Args:
        folder: The SavedModel to write.
        model: The owner of the variables.
        functions: Dict of name to `tf.function` with an input signature. The
            first is also the default signature.
    """
    module = tf.Module()
    module.weights = [variable.value for variable in model.variables]
    signatures: dict[str, Callable] = {}
    for name, function in functions.items():
        setattr(module, name, function)
        signatures.setdefault("serving_default", function)
        signatures[name] = function
    tf.saved_model.save(module, str(folder), signatures=signatures)
