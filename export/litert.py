"""Export as a LiteRT (`.tflite`) file for phones and other small devices."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np

from keras_dml.errors import UsageError
from keras_dml.export.artefact import (
    MANIFEST,
    make_manifest,
    replacing_folder,
    write_json,
)
from keras_dml.export.litert_conversion import QUANTIZATIONS, convert, count_ops
from keras_dml.export.litert_metadata import add_metadata
from keras_dml.models import float32_clone
from keras_dml.naming import nearest

FILE = "embedder.tflite"


def export_litert(
    embedder: keras.Model,
    path: str | Path,
    *,
    quantize: str = "none",
    dynamic_batch: bool = False,
    calibration: Iterable[np.ndarray] | None = None,
    resize: int | None = None,
    squash: bool = False,
    metadata: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Writes `embedder.tflite`, of the ops built into LiteRT.

    One image, uint8 `(1, height, width, channels)`, RGB or grey, in; a
    float32 embedding `(1, dim)` out, whatever is quantized between them. The
    signature is "serve", its input "image", its output "embedding". Cast,
    normalization of the values and, if the embedder has it, of the embedding
    are inside; the client resizes and crops, for antialiased resizing is no
    built-in op.

    Quantizations:

    - `"none"`: float32, whatever the policy of the embedder was.
    - `"float16"`: weights in float16, half the size; computes in float32.
    - `"dynamic_range"`: weights in int8; activations are quantized one by
      one while the model runs.
    - `"int8"`: weights and activations in int8, with ranges measured on
      `calibration`. The division by the length stays in float32, so
      embeddings have length 1.

    The folder has a `manifest.json` with version, preprocessing and metadata;
    the same is inside the file, see `read_metadata`.

    Args:
        embedder: Model of images of a fixed size with values in 0..255.
        path: The folder to write; an earlier export there is replaced.
        quantize: One of the quantizations. Defaults to `"none"`.
        dynamic_batch: Whether the file takes any number of images at once.
            Some accelerators of phones need a fixed one. Defaults to `False`,
            one image.
        calibration: For `"int8"`, uint8 images `(height, width, channels)` of
            the training set, resized as in the evaluation; 200 are plenty.
            Defaults to `None`.
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
        UsageError: The quantization is unknown, `calibration` is empty or
            holds no such images, or `path` holds something that is not an
            export.

    Example:

    ```python
    export_litert(embedder, "export/litert-int8", quantize="int8",
                  calibration=train_images[:200])
    interpreter = ai_edge_litert.interpreter.Interpreter(
        "export/litert-int8/embedder.tflite"
    )
    ```
    """
    path = Path(path)
    check_quantization(quantize)
    with replacing_folder(path, force) as folder:
        content = convert(
            float32_clone(embedder), quantize, dynamic_batch, calibration
        )
        manifest = make_manifest(
            embedder,
            resize=resize,
            squash=squash,
            metadata=metadata,
            format="litert",
            file=FILE,
            quantize=quantize,
            dynamic_batch=dynamic_batch,
            ops=count_ops(content),
        )
        (folder / FILE).write_bytes(add_metadata(content, manifest))
        write_json(folder / MANIFEST, manifest)
    return path


def check_quantization(quantize: str) -> None:
    """Refuses a quantization that there is not.

    Raises:
        UsageError: It is none of `QUANTIZATIONS`.
    """
    if quantize not in QUANTIZATIONS:
        raise UsageError(
            f"`quantize` must be one of {', '.join(QUANTIZATIONS)}. "
            f"Received: {quantize!r}. Nearest: "
            f"{nearest(quantize, QUANTIZATIONS)}."
        )
