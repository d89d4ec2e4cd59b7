"""Embeds image files, or finds their neighbors, by TensorFlow Serving's gRPC.

    pip install grpcio tensorflow-serving-api
    python grpc_client.py photo.jpg
    python grpc_client.py --k 5 photo.jpg other.png

`tensorflow-serving-api` brings TensorFlow along. `--k` asks a model exported
`--with-index`.
"""

import argparse
import json

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import (
    predict_pb2,
    prediction_service_pb2_grpc,
)

# The default of 4 MB is less than a few photographs.
OPTIONS = [
    ("grpc.max_send_message_length", 2**28),
    ("grpc.max_receive_message_length", 2**28),
]


def make_request(images, k=None, model="embedder"):
    """A `PredictRequest` for the bytes of image files."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    inputs = {"image_bytes": np.array(images, dtype=object)}
    request.model_spec.signature_name = "serve_image_bytes"
    if k is not None:
        request.model_spec.signature_name = "neighbors"
        # One for each image, so that a server may join requests.
        inputs["k"] = np.full(len(images), k, "int32")
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return request


def predict(target, images, k=None, model="embedder", timeout=30.0):
    """Dict of arrays: "embedding", or "ids", "labels" and "scores".

    It also has "ok".
    """
    with grpc.insecure_channel(target, OPTIONS) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        request = make_request(images, k, model)
        try:
            answer = stub.Predict(request, timeout)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                raise SystemExit(f"No server answers at {target}.") from error
            raise SystemExit(
                f"The server refused: {error.details()}"
            ) from error
    return {
        name: tf.make_ndarray(value) for name, value in answer.outputs.items()
    }


def read_threshold(path):
    """The score that a match reaches, or `None` where the run has none."""
    with open(path, encoding="utf-8") as file:
        threshold = json.load(file)["threshold"]
    return None if threshold is None else threshold["score"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("images", nargs="+", help="image files")
    parser.add_argument("--target", default="localhost:8500")
    parser.add_argument("--model", default="embedder")
    parser.add_argument("--k", type=int, help="find that many neighbors")
    parser.add_argument(
        "--manifest", help="manifest.json of the export: tells what matches"
    )
    arguments = parser.parse_args()
    least = read_threshold(arguments.manifest) if arguments.manifest else None
    contents = []
    for path in arguments.images:
        try:
            with open(path, "rb") as file:
                contents.append(file.read())
        except OSError as error:
            raise SystemExit(
                f"{path} cannot be read: {error.strerror}."
            ) from error
    answer = predict(
        arguments.target, contents, arguments.k, model=arguments.model
    )
    for row, path in enumerate(arguments.images):
        if not answer["ok"][row]:
            print(f"{path}: no image that can be decoded")
        elif arguments.k is None:
            print(path, answer["embedding"][row].tolist())
        else:
            unknown = least is not None and answer["scores"][row, 0] < least
            print(f"{path}: no match" if unknown else path)
            columns = (
                answer[key][row, : arguments.k].tolist()
                for key in ("ids", "labels", "scores")
            )
            for one, label, score in zip(*columns, strict=True):
                # Lower than any score: fewer references than asked for.
                if score > -1e30:
                    text = one.decode() if isinstance(one, bytes) else one
                    print(f"  {score:.4f}  {label.decode()}  {text}")


if __name__ == "__main__":
    main()
