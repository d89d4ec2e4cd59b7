"""Servers that speak TensorFlow Serving's protocols for a SavedModel.

Requests are read and answers written as the documents of its REST API and the
messages of its gRPC API say; the numbers come from the SavedModel itself.
"""

import base64
import contextlib
import http.server
import json
import threading
from concurrent import futures

import numpy as np
import tensorflow as tf


def call(signatures, name, inputs):
    """Calls a signature with arrays, cast to what it takes."""
    signature = signatures[name]
    _, wanted = signature.structured_input_signature
    if set(wanted) != set(inputs):
        raise ValueError(f"{name} takes {set(wanted)}, not {set(inputs)}")
    tensors = {
        key: tf.constant(value, wanted[key].dtype)
        for key, value in inputs.items()
    }
    return {key: value.numpy() for key, value in signature(**tensors).items()}


def _decoded(value):
    if isinstance(value, dict):
        assert set(value) == {"b64"}
        return base64.b64decode(value["b64"], validate=True)
    return value


def _plain(value):
    return value.decode() if isinstance(value, bytes) else value


def _predictions(outputs):
    """The row format: one object for each row."""
    lists = {key: value.tolist() for key, value in outputs.items()}
    counts = {len(rows) for rows in lists.values()}
    assert len(counts) == 1, counts
    rows = [
        {
            key: [_plain(one) for one in value]
            if isinstance(value, list)
            else _plain(value)
            for key, value in zip(lists, row, strict=True)
        }
        for row in zip(*lists.values(), strict=True)
    ]
    # A single output comes without its name.
    return (
        [next(iter(row.values())) for row in rows] if len(lists) == 1 else rows
    )


@contextlib.contextmanager
def rest_server(signatures, model="embedder"):
    """Yields the URL of a REST server."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            try:
                if self.path != f"/v1/models/{model}:predict":
                    raise LookupError(f"Servable not found: {self.path}")
                request = json.loads(body)
                rows = request["instances"]
                inputs = {
                    key: [_decoded(row[key]) for row in rows] for key in rows[0]
                }
                name = request["signature_name"]
                outputs = call(signatures, name, inputs)
                code, answer = 200, {"predictions": _predictions(outputs)}
            except Exception as error:
                code, answer = 400, {"error": str(error)}
            # Not a number and infinity are no JSON.
            content = json.dumps(answer, allow_nan=False).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def grpc_server(signatures, model="embedder"):
    """Yields the address of a gRPC server."""
    import grpc
    from tensorflow_serving.apis import (
        predict_pb2,
        prediction_service_pb2_grpc,
    )

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):  # noqa: N802
            if request.model_spec.name != model:
                context.abort(grpc.StatusCode.NOT_FOUND, "Servable not found")
            try:
                inputs = {
                    key: tf.make_ndarray(value)
                    for key, value in request.inputs.items()
                }
                name = request.model_spec.signature_name
                outputs = call(signatures, name, inputs)
            except Exception as error:
                code = grpc.StatusCode.INVALID_ARGUMENT
                context.abort(code, str(error))
            answer = predict_pb2.PredictResponse()
            for key, value in outputs.items():
                answer.outputs[key].CopyFrom(tf.make_tensor_proto(value))
            return answer

    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        Service(), server
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def nearest_of(signatures, contents, k):
    """What the SavedModel itself answers, as text."""
    found = call(
        signatures,
        "neighbors",
        {"image_bytes": contents, "k": np.full(len(contents), k)},
    )
    return found["ids"].astype("S").astype(str), found["scores"]
