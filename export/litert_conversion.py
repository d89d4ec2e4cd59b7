"""Converts a Keras model to the bytes of a LiteRT file."""

import collections
import functools
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator

import keras
import numpy as np
import tensorflow as tf
from tensorflow.lite.tools import flatbuffer_utils

from keras_dml.console import track, without_native_output
from keras_dml.errors import RunError, UsageError
from keras_dml.export.saved_model import save_functions

# `keras.ops.normalize` divides shorter vectors by this.
_SMALLEST_LENGTH = 1e-12
# These ops take most of the file and most of the time.
_MATRIX_OPS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
# The first convolutions stay float32 up to this share of all weights.
_FLOAT_SHARE = 0.01


def convert(
    model: keras.Model,
    quantize: str = "none",
    dynamic_batch: bool = False,
    calibration: Iterable[np.ndarray] | None = None,
) -> bytes:
    """Converts a float32 model to LiteRT, with built-in ops only.

    With `"int8"` the weights are int8, with one scale per output channel. The
    activations of the feature maps and of the matrix products behind them are
    int8, too. Cheap or small parts stay float32:

    - the preprocessing, because int8 would merge gray levels;
    - the first convolutions, up to 1 % of the weights, because all other
      layers would inherit their errors;
    - ops on one vector per image, such as layer normalization and the
      division by the length: in int8 the embeddings would not have length 1.

    Args:
        model: Model of images of a fixed size, in float32.
        quantize: One of `options.QUANTIZATIONS`.
        dynamic_batch: Whether a batch may have any number of images instead
            of one.
        calibration: For `"int8"`, uint8 images `(height, width, channels)`.

    Returns:
        The content of the file. The input is uint8 "image", the output
        float32 "embedding".

    Raises:
        UsageError: If the images are missing, or have another shape or type.
        RunError: If an op is not built into LiteRT.
    """
    images = None
    if quantize == "int8":
        images = _calibration_images(calibration, model.input_shape[1:])
    shape = (None if dynamic_batch else 1, *model.input_shape[1:])
    unit = isinstance(model.layers[-1], keras.layers.UnitNormalization)
    if unit:
        model = keras.Model(model.input, model.layers[-1].input)

    @tf.function(
        input_signature=[tf.TensorSpec(shape, tf.uint8, name="image")],
        autograph=False,
    )
    def serve(image):
        pixels = tf.cast(image, tf.float32)
        rows = model(pixels, training=False)
        return {"embedding": _unit_rows(rows) if unit else rows}

    with tempfile.TemporaryDirectory() as folder:
        save_functions(folder, model, {"serve": serve})
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=["serve"]
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        if quantize != "none":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        try:
            with without_native_output():
                if images is None:
                    return converter.convert()
                return _convert_int8(converter, images)
        except Exception as error:
            raise RunError(_explain(str(error))) from error


def _unit_rows(rows):
    """Normalizes like `keras.layers.UnitNormalization`, without 1 / sqrt(0).

    The layer relies on 1 / sqrt(0) being infinite. XNNPACK, which LiteRT uses
    on nearly every processor, returns NaN. So this bounds the argument of the
    root.
    """
    squared = tf.reduce_sum(tf.square(rows), axis=-1, keepdims=True)
    return rows * tf.math.rsqrt(tf.maximum(squared, _SMALLEST_LENGTH**2))


def _calibration_images(calibration, image_shape):
    images = [] if calibration is None else [*calibration]
    if not images:
        raise UsageError(
            "`calibration` must hold at least one image: the ranges of int8 "
            "activations are measured on images of the training set. "
            "Received: none."
        )
    for image in map(np.asarray, images):
        if image.dtype != np.uint8 or image.shape != tuple(image_shape):
            raise UsageError(
                f"`calibration` must hold uint8 images of shape {image_shape}. "
                f"Received: an image with dtype={image.dtype}, "
                f"shape={image.shape}"
            )
    # Black and white are always in range, also if no image contains them.
    extremes = np.array(images[0])
    extremes[0, 0], extremes[0, -1] = 0, 255
    return np.stack([*images, extremes])


def _convert_int8(converter, images):
    """Quantizes all ops except those of `_float_tensors`."""

    def representative() -> Iterator[dict[str, np.ndarray]]:
        # The converter measures the ranges of all activations on each image.
        for image in track(images, "quantizing to int8", len(images)):
            yield {"image": image[None]}

    converter.representative_dataset = representative
    with warnings.catch_warnings():
        # The debugger is the public way to leave ops in float32. It uses
        # TensorFlow's interpreter, which warns that it has moved to LiteRT.
        warnings.filterwarnings("ignore", message=r"\s*Warning: tf.lite.Int")
        debugger = tf.lite.experimental.QuantizationDebugger(
            converter=converter, debug_dataset=representative
        )
        debugger.options = tf.lite.experimental.QuantizationDebugOptions(
            denylisted_nodes=_float_tensors(debugger.calibrated_model)
        )
        return debugger.get_nondebug_quantized_model()


def _float_tensors(content: bytes) -> list[str]:
    """Returns the names of the outputs of the ops that stay in float32."""
    graph, kinds = _read_graph(content)
    weights = [
        np.prod(graph.tensors[op.inputs[1]].shape) if kind in _MATRIX_OPS else 0
        for op, kind in zip(graph.operators, kinds, strict=True)
    ]
    left = _FLOAT_SHARE * sum(weights)
    names = []
    for op, count in zip(graph.operators, weights, strict=True):
        left -= count
        in_front = left >= 0
        if count and not in_front:
            continue
        for index in op.outputs:
            tensor = graph.tensors[index]
            if in_front or len(tensor.shape) <= 2:
                names.append(tensor.name.decode())
    return names


def _explain(message: str) -> str:
    """Extracts the ops, and their places, from the converter's message."""
    ops = sorted(set(re.findall(r"'tf\.(\w+)' op", message)))
    if not ops:
        return f"The conversion to LiteRT failed: {message}"
    named = []
    for op in ops:
        place = re.search(rf'"{op}:", "([^"@]+)', message)
        named.append(f"{op} (in {place[1]})" if place else op)
    return (
        f"LiteRT has no built-in op for {', '.join(named)}. Choose a backbone "
        "without it, or export the format `saved_model`."
    )


def count_ops(content: bytes) -> dict[str, int]:
    """Counts how often each op occurs in a LiteRT file.

    Args:
        content: The content of the file.
    """
    return dict(collections.Counter(_read_graph(content)[1]))


def _read_graph(content):
    """Returns the graph of a LiteRT file, and the kind of each op."""
    model = flatbuffer_utils.convert_bytearray_to_object(content)
    graph = model.subgraphs[0]
    name_of = functools.partial(flatbuffer_utils.opcode_to_name, model)
    return graph, [name_of(op.opcodeIndex) for op in graph.operators]
