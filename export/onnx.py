"""Exports to ONNX, for ONNX Runtime and other runtimes."""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from keras_dml.console import without_native_output
from keras_dml.errors import RunError, UsageError
from keras_dml.export.artifact import MAKER, make_manifest
from keras_dml.export.formats import Format, Runner, as_float32
from keras_dml.export.options import ExportOptions
from keras_dml.models import float32_clone

FILE = "embedder.onnx"

_PACKAGES = ("onnx", "onnxruntime", "tf2onnx")
# The runtimes of phones and browsers support this opset.
_OPSET = 15


class Onnx(Format):
    """Writes `embedder.onnx` with standard ops."""

    name = "onnx"
    title = "ONNX"
    runs_on = "programs without TensorFlow"

    def check(self, options: ExportOptions) -> None:
        """Raises if a package that ONNX needs is missing."""
        for name in _PACKAGES:
            _imported(name)

    def write(
        self, embedder: keras.Model, folder: Path, options: ExportOptions
    ) -> dict[str, Any]:
        """Writes `embedder.onnx`, with the manifest in its metadata."""
        model = _convert(float32_clone(embedder))
        manifest = make_manifest(
            embedder, options, format=self.name, file=FILE, opset=_OPSET
        )
        entry = model.metadata_props.add()
        entry.key, entry.value = MAKER, json.dumps(manifest)
        (folder / FILE).write_bytes(model.SerializeToString())
        return manifest

    def open(
        self, folder: Path, manifest: Mapping[str, Any], threads: int
    ) -> Runner:
        """Opens the file with ONNX Runtime."""
        onnxruntime = _imported("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(
            str(folder / FILE), options, providers=["CPUExecutionProvider"]
        )
        return Runner(
            as_float32,
            lambda batch: session.run(["embedding"], {"image": batch})[0],
        )


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            "The format `onnx` needs the packages "
            f"{', '.join(_PACKAGES)} ({error}). Install them with "
            "`pip install 'keras-dml[onnx]'`."
        ) from error


def export_onnx(
    embedder: keras.Model,
    path: str | Path,
    options: ExportOptions | None = None,
    **changes: Any,
) -> Path:
    """Writes `embedder.onnx` with standard ops.

    The input is any number of images, float32 "image" `(batch, height, width,
    channels)` with values in 0..255, and the output float32 "embedding"
    `(batch, dim)`. The model normalizes the values, and the embedding if the
    embedder does; the client resizes and crops. The model computes in float32
    for any dtype policy of the embedder. The folder has a `manifest.json` with
    version, preprocessing and metadata. The metadata of the `.onnx` file
    contain the same manifest under the key "keras-dml".

    The conversion calls tf2onnx directly. `keras.Model.export` fails on a
    model that was just loaded from a file, and names the output "Identity:0".

    Args:
        embedder: Model of images of a fixed size with values in 0..255.
        path: The folder to write; an earlier export there is replaced.
        options: `ExportOptions`. Defaults to `ExportOptions()`.
        **changes: Arguments of `ExportOptions` that override `options`:
            `resize`, `squash`, `metadata` or `force`.

    Returns:
        The folder.

    Raises:
        RunError: If the model has an op that ONNX does not have.
        UsageError: If the packages for ONNX are not installed, or `path`
            holds something that is not an export.

    Example:

    ```python
    export_onnx(embedder, "export/onnx")
    session = onnxruntime.InferenceSession("export/onnx/embedder.onnx")
    (embeddings,) = session.run(["embedding"], {"image": images})
    ```
    """
    return Onnx().export(embedder, path, options, changes)


def _convert(model: keras.Model) -> Any:
    import tf2onnx

    shape = (None, *model.input_shape[1:])
    signature = [tf.TensorSpec(shape, tf.float32, name="image")]

    @tf.function(input_signature=signature, autograph=False)
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
    """Raises if tf2onnx wrote ops that ONNX does not have."""
    import onnx

    unknown = sorted(
        f"{node.op_type} (in {node.name})"
        for node in model.graph.node
        if not onnx.defs.has(node.op_type, node.domain)
    )
    if unknown:
        raise RunError(
            f"ONNX has no op for {', '.join(unknown)}. Choose a backbone "
            "without it, or export the format `saved_model`."
        )
