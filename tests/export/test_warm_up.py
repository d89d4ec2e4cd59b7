"""What the exporter writes for TensorFlow Serving can be replayed."""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.tools import saved_model_cli

from keras_dml.export.warm_up import FILE, prediction_log

RNG = np.random.default_rng(0)


def read_logs(path):
    apis = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    return [
        apis.PredictionLog.FromString(record.numpy())
        for record in tf.data.TFRecordDataset(str(path))
    ]


def test_the_file_replays_through_the_signatures(indexed_folder):
    """As the server does: by name, with the tensors of the message."""
    signatures = tf.saved_model.load(str(indexed_folder)).signatures
    replayed = set()
    for log in read_logs(indexed_folder / FILE):
        request = log.predict_log.request
        name = request.model_spec.signature_name
        inputs = {
            key: tf.constant(tf.make_ndarray(value))
            for key, value in request.inputs.items()
        }
        answer = signatures[name](**inputs)
        assert all(len(value) == 1 for value in answer.values())
        if "ok" in answer:
            assert answer["ok"].numpy().all()
        replayed.add(name)
    assert replayed == {*signatures} - {"similarity", "serving_default"}


@pytest.mark.parametrize(
    "value",
    [
        np.array([b"", b"\xff\xd8", b"x" * 200], dtype=object),
        np.array([3], "int32"),
        RNG.normal(size=(1, 70, 70, 3)).astype("float32"),
    ],
    ids=["bytes", "integers", "images"],
)
def test_the_message_is_that_of_the_servers_own_package(value):
    apis = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    expected = apis.PredictionLog()
    request = expected.predict_log.request
    request.model_spec.name = "embedder"
    request.model_spec.signature_name = "neighbors"
    request.inputs["value"].CopyFrom(tf.make_tensor_proto(value))
    written = prediction_log("neighbors", {"value": value})
    assert apis.PredictionLog.FromString(written) == expected
    assert written == expected.SerializeToString()


@pytest.mark.slow
def test_saved_model_cli_names_the_endpoints(indexed_folder):
    command = [sys.executable, "-m", saved_model_cli.__name__, "show", "--all"]
    shown = subprocess.run(
        [*command, "--dir", indexed_folder], capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr[-2000:]
    text = shown.stdout
    for line in (
        "signature_def['serve']",
        "signature_def['serving_default']",
        "signature_def['serve_uint8']",
        "signature_def['serve_image_bytes']",
        "signature_def['similarity']",
        "signature_def['neighbors']",
        "signature_def['neighbors_of_embedding']",
        "inputs['image_bytes'] tensor_info",
        "inputs['k'] tensor_info",
        "outputs['ids'] tensor_info",
        "outputs['scores'] tensor_info",
    ):
        assert line in text, line


def test_a_server_that_checks_no_shapes_is_told(indexed_folder):
    """As TensorFlow Serving runs it: a session fed by the tensors' names."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        image = tf.compat.v1.placeholder(tf.float32)
        loaded = tf.compat.v1.saved_model.load(
            session,
            ["serve"],
            str(indexed_folder),
            input_map={"serve_image:0": image},
        )
        signature = loaded.signature_def["serve"]
        output = signature.outputs["embedding"].name
        rows = session.run(output, {image: np.zeros((2, 16, 16, 3))})
        assert rows.shape == (2, 8)
        for shape in ((2, 20, 20, 3), (16, 16, 3), (2, 16, 16, 1)):
            with pytest.raises(
                tf.errors.InvalidArgumentError, match="expected shape"
            ):
                session.run(output, {image: np.zeros(shape)})
