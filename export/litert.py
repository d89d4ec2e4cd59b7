"""Export as a LiteRT (`.tflite`) file for phones and other small devices."""

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_dml.console import without_native_output
from keras_dml.errors import RunError
from keras_dml.export.artefact import replacing_folder, write_manifest
from keras_dml.export.saved_model import save_functions
from keras_dml.models import float32_clone

FILE = "embedder.tflite"


def export_litert(
    embedder: keras.Model,
    path: str | Path,
    *,
    resize: int | None = None,
    squash: bool = False,
    metadata: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Writes `embedder.tflite`, of the ops built into LiteRT.

    One image, uint8 `(1, height, width, channels)`, RGB or grey, in; a
    float32 embedding `(1, dim)` out. Cast, normalization of the values and,
    if the embedder has it, of the embedding are inside; the client resizes
    and crops, for antialiased resizing is no built-in op. The model computes
    in float32 whatever its policy was. The folder has a `manifest.json` with
    version, preprocessing and metadata.

    Args:
        embedder: Model of images of a fixed size with values in 0..255.
        path: The folder to write; an earlier export there is replaced.
        resize: Shorter side in pixels to which the evaluation resizes before
            it crops, for the manifest. Defaults to the size of the images.
        squash: Whether it resizes both sides to it, for the manifest.
            Defaults to `False`.
        metadata: JSON-able facts for the manifest, such as recipe, metrics
            and labels. Defaults to none.
        force: Whether to replace a folder that is not an export. Defaults to
            `False`.

    Returns:
        The folder.

    Raises:
        RunError: The model has an op that is not built into LiteRT.
        UsageError: `path` holds something that is not an export.

    Example:

    ```python
    export_litert(embedder, "export/litert")
    interpreter = ai_edge_litert.interpreter.Interpreter(
        "export/litert/embedder.tflite"
    )
    ```
    """
    path = Path(path)
    with replacing_folder(path, force) as folder:
        (folder / FILE).write_bytes(_convert(float32_clone(embedder)))
        write_manifest(
            folder,
            embedder,
            resize=resize,
            squash=squash,
            metadata=metadata,
            format="litert",
            file=FILE,
            quantize="none",
        )
    return path


def _convert(model):
    signature = tf.TensorSpec(
        (1, *model.input_shape[1:]), tf.uint8, name="image"
    )

    @tf.function(input_signature=[signature])
    def serve(image):
        images = tf.cast(image, tf.float32)
        return {"embedding": model(images, training=False)}

    with tempfile.TemporaryDirectory() as folder:
        save_functions(folder, model, {"serve": serve})
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=["serve"]
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        try:
            with without_native_output():
                return converter.convert()
        except Exception as error:
            raise RunError(_explain(str(error))) from error


def _explain(message):
    """Names the ops, and where they are, in the message of the converter."""
    ops = sorted(set(re.findall(r"'tf\.(\w+)' op", message)))
    if not ops:
        return f"The conversion to LiteRT failed: {message}"
    named = []
    for op in ops:
        place = re.search(rf'"{op}:", "([^"@]+)', message)
        named.append(f"{op} (in {place[1]})" if place else op)
    return (
        f"LiteRT has no built-in op for {', '.join(named)}. Choose a backbone "
        "without it, or export `--format saved_model`."
    )
