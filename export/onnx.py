"""Export as an ONNX file, for ONNX Runtime and whatever else reads it."""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_dml.console import without_native_output
from keras_dml.errors import RunError, UsageError
from keras_dml.export.artefact import (
    MAKER,
    MANIFEST,
    make_manifest,
    replacing_folder,
    write_json,
)
from keras_dml.models import float32_clone

FILE = "embedder.onnx"

_PACKAGES = ("onnx", "onnxruntime", "tf2onnx")
# Old enough for the runtimes of phones and browsers.
_OPSET = 15


def export_onnx(
    embedder: keras.Model,
    path: str | Path,
    *,
    resize: int | None = None,
    squash: bool = False,
    metadata: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Writes `embedder.onnx`, of the standard ops.

    Any number of images, float32 "image" `(batch, height, width, channels)`
    with values in 0..255, in; float32 "embedding" `(batch, dim)` out.
    Normalization of the values and, if the embedder has it, of the embedding
    are inside; the client resizes and crops. The model computes in float32
    whatever its policy was. The folder has a `manifest.json` with version,
    preprocessing and metadata; the same is in the file's own metadata, under
    "keras-dml".

    It is converted by tf2onnx, without `keras.Model.export`: that refuses a
    model fresh from a file, and calls its output "Identity:0".

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
        RunError: The model has an op that ONNX has not.
        UsageError: The packages for ONNX are not installed, or `path` holds
            something that is not an export.

    Example:

    ```python
    export_onnx(embedder, "export/onnx")
    session = onnxruntime.InferenceSession("export/onnx/embedder.onnx")
    (embeddings,) = session.run(["embedding"], {"image": images})
    ```
    """
    check_onnx()
    path = Path(path)
    with replacing_folder(path, force) as folder:
        model = _convert(float32_clone(embedder))
        manifest = make_manifest(
            embedder,
            resize=resize,
            squash=squash,
            metadata=metadata,
            format="onnx",
            file=FILE,
            opset=_OPSET,
        )
        entry = model.metadata_props.add()
        entry.key, entry.value = MAKER, json.dumps(manifest)
        (folder / FILE).write_bytes(model.SerializeToString())
        write_json(folder / MANIFEST, manifest)
    return path


def check_onnx() -> None:
    """Refuses to go on without the packages that ONNX needs.

    Raises:
        UsageError: One of them cannot be imported.
    """
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise UsageError(
                f"`--format onnx` needs the packages {', '.join(_PACKAGES)} "
                f"({error}). Install them with `pip install "
                "'keras-dml[onnx]'`."
            ) from error


def _convert(model: keras.Model) -> Any:
    import tf2onnx

    shape = (None, *model.input_shape[1:])
    signature = [tf.TensorSpec(shape, tf.float32, name="image")]

    @tf.function(input_signature=signature)
    def serve(image):
        return {"embedding": model(image, training=False)}

    try:
        with without_native_output():
            converted, _ = tf2onnx.convert.from_function(
                serve, signature, opset=_OPSET
            )
    except Exception as error:
        raise RunError(f"The conversion to ONNX failed: {error}") from error
    _check_ops(converted)
    for value in (*converted.graph.input, *converted.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    return converted


def _check_ops(model: Any) -> None:
    """Names the ops that ONNX has not: tf2onnx puts them in all the same."""
    import onnx

    unknown = sorted(
        f"{node.op_type} (in {node.name})"
        for node in model.graph.node
        if not onnx.defs.has(node.op_type, node.domain)
    )
    if unknown:
        raise RunError(
            f"ONNX has no op for {', '.join(unknown)}. Choose a backbone "
            "without it, or export `--format saved_model`."
        )
