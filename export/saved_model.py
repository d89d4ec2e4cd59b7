"""Export as a TensorFlow SavedModel."""

from collections.abc import Mapping
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
    shape = (None, *embedder.input_shape[1:])

    def serve(image):
        images = tf.cast(image, tf.float32)
        return {"embedding": embedder(images, training=False)}

    def serve_image_bytes(image_bytes):
        return embed_image_bytes(embedder, image_bytes, resize, squash)

    endpoints = {
        "serve": (serve, tf.TensorSpec(shape, tf.float32, name="image")),
        "serve_uint8": (serve, tf.TensorSpec(shape, tf.uint8, name="image")),
        "serve_image_bytes": (
            serve_image_bytes,
            tf.TensorSpec((None,), tf.string, name="image_bytes"),
        ),
    }
    archive = keras.export.ExportArchive()
    archive.track(embedder)
    for name, (function, signature) in endpoints.items():
        archive.add_endpoint(name, function, input_signature=[signature])
    with replacing_folder(path, force) as folder:
        archive.write_out(folder, verbose=False)
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
