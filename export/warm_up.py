"""Writes requests that TensorFlow Serving replays before it serves a model.

The first call of an endpoint takes longer, because TensorFlow optimizes the
graph and makes ScaNN's searcher. The file is a TFRecord of `PredictionLog`
messages. This module serializes them itself, because the package that defines
them is as large as a server.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

FILE = Path("assets.extra", "tf_serving_warmup_requests")
MODEL_NAME = "embedder"

# Field numbers of `PredictionLog.predict_log`, `PredictLog.request`,
# `PredictRequest.model_spec` and `.inputs`, `ModelSpec.name` and
# `.signature_name`, and of a map's entry.
_PREDICT_LOG = 6
_REQUEST = 1
_MODEL_SPEC, _INPUTS = 1, 2
_NAME, _SIGNATURE_NAME = 1, 3
_KEY, _VALUE = 1, 2

_LENGTH_DELIMITED = 2


def write_warm_up(
    folder: str | Path, requests: Mapping[str, Mapping[str, np.ndarray]]
) -> Path:
    """Writes warm-up requests into a SavedModel.

    Args:
        folder: The SavedModel.
        requests: Dict that maps the name of an endpoint to a dict of its
            inputs.

    Returns:
        The path of the file.
    """
    path = Path(folder) / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature, inputs in requests.items():
            writer.write(prediction_log(signature, inputs))
    return path


def prediction_log(signature: str, inputs: Mapping[str, np.ndarray]) -> bytes:
    """Returns the serialized `PredictionLog` of one request.

    Args:
        signature: Name of the endpoint.
        inputs: Dict of names to arrays.
    """
    spec = _field(_NAME, MODEL_NAME.encode()) + _field(
        _SIGNATURE_NAME, signature.encode()
    )
    request = _field(_MODEL_SPEC, spec)
    for name, value in inputs.items():
        tensor = tf.make_tensor_proto(value).SerializeToString()
        entry = _field(_KEY, name.encode()) + _field(_VALUE, tensor)
        request += _field(_INPUTS, entry)
    return _field(_PREDICT_LOG, _field(_REQUEST, request))


def example_requests(
    image_shape: tuple[int, int, int], dim: int | None = None
) -> dict[str, dict[str, np.ndarray]]:
    """Returns a request for each endpoint that a server may batch.

    `similarity` has no request: it relates all rows of a request, so a server
    that merges requests into batches would not start.

    Args:
        image_shape: Height, width and channels.
        dim: Integer, the dimension of the embeddings in an index. Defaults to
            `None`, no index.
    """
    height, width, _ = image_shape
    ramp = np.linspace(0, 255, height * width).reshape(1, height, width, 1)
    images = np.broadcast_to(ramp, (1, *image_shape)).astype("uint8")
    picture = np.ascontiguousarray(images[0, ..., :1])
    contents = np.array([tf.io.encode_jpeg(picture).numpy()], dtype=object)
    requests = {
        "serve": {"image": images.astype("float32")},
        "serve_uint8": {"image": images},
        "serve_image_bytes": {"image_bytes": contents},
    }
    if dim is not None:
        k = np.array([1], "int32")
        embedding = np.full((1, dim), dim**-0.5, "float32")
        requests["neighbors"] = {"image_bytes": contents, "k": k}
        requests["neighbors_of_embedding"] = {"embedding": embedding, "k": k}
    return requests


def _field(number: int, payload: bytes) -> bytes:
    """Returns a length-delimited field of a protocol buffer."""
    tag = number << 3 | _LENGTH_DELIMITED
    return bytes([tag, *_varint(len(payload))]) + payload


def _varint(number: int) -> Iterator[int]:
    while number > 127:
        yield number & 127 | 128
        number >>= 7
    yield number
