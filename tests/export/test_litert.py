"""The LiteRT file answers as the embedder does, with numpy alone."""

import json

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from keras_dml.errors import RunError, UsageError
from keras_dml.export import export_litert
from tests.conformance import to_numpy
from tests.export.kinds import MODELS

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (4, 16, 16, 3)).astype("uint8")

BARE = """
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    run = Interpreter(sys.argv[1]).get_signature_runner("serve")
    images = np.load(sys.argv[2])
    rows = [run(image=image[None])["embedding"] for image in images]
    np.save(sys.argv[3], np.concatenate(rows))
"""


def embed(folder, images):
    interpreter = Interpreter(str(folder / "embedder.tflite"))
    run = interpreter.get_signature_runner("serve")
    return np.concatenate(
        [run(image=image[None])["embedding"] for image in images]
    )


@pytest.mark.parametrize("name", MODELS)
def test_answers_as_the_embedder(name, make_embedder, tmp_path):
    embedder = make_embedder(**MODELS[name])
    images = IMAGES[..., : embedder.input_shape[-1]]
    folder = export_litert(embedder, tmp_path / "litert")
    actual, expected = embed(folder, images), to_numpy(embedder(images))
    assert actual.dtype == np.float32
    # Half precision is left behind, and with it its rounding.
    tolerance = 0.05 if "mixed" in name else 1e-4
    np.testing.assert_allclose(actual, expected, atol=tolerance)


def test_input_is_one_uint8_image(make_embedder, tmp_path):
    folder = export_litert(make_embedder(channels=1), tmp_path / "litert")
    interpreter = Interpreter(str(folder / "embedder.tflite"))
    (entry,) = interpreter.get_input_details()
    assert entry["dtype"] == np.uint8
    assert entry["shape"].tolist() == [1, 16, 16, 1]


def test_process_with_numpy_alone(make_embedder, run_bare, tmp_path):
    embedder = make_embedder(pooling="k_max", k=2)
    folder = export_litert(embedder, tmp_path / "litert")
    np.save(tmp_path / "images.npy", IMAGES)
    run_bare(
        BARE,
        folder / "embedder.tflite",
        tmp_path / "images.npy",
        tmp_path / "rows.npy",
        absent=("tensorflow", "keras", "keras_dml"),
    )
    np.testing.assert_allclose(
        np.load(tmp_path / "rows.npy"), to_numpy(embedder(IMAGES)), atol=1e-4
    )


def test_manifest(make_embedder, tmp_path):
    folder = export_litert(
        make_embedder(normalize=False),
        tmp_path / "litert",
        metadata={"recipe": "hbn"},
    )
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["format"] == "litert"
    assert manifest["file"] == "embedder.tflite"
    assert manifest["quantize"] == "none"
    assert manifest["recipe"] == "hbn"
    assert manifest["embedding"] == {"dim": 8, "unit_length": False}


@keras.saving.register_keras_serializable(package="tests")
class InverseErrorFunction(keras.layers.Layer):
    """An op that LiteRT has not."""

    def call(self, inputs):
        return keras.ops.erfinv(inputs)


def test_an_unsupported_op_is_named_with_its_layer(make_embedder, tmp_path):
    embedder = make_embedder()
    odd = InverseErrorFunction(name="odd_layer")(embedder.output)
    path = tmp_path / "litert"
    with pytest.raises(RunError, match=r"no built-in op for Erfinv \(in .*odd"):
        export_litert(keras.Model(embedder.input, odd), path)
    assert not list(tmp_path.iterdir())


def test_foreign_folder_is_refused(make_embedder, tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"precious")
    with pytest.raises(UsageError, match="is not an export"):
        export_litert(make_embedder(), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "backbone", ["mobilenet_v2", "mobilenet_v3_small", "convnext_tiny"]
)
def test_backbones_need_no_other_ops(backbone, make_embedder, tmp_path):
    embedder = make_embedder(size=32, backbone=backbone, weights="none")
    folder = export_litert(embedder, tmp_path / "litert")
    images = RNG.integers(0, 256, (2, 32, 32, 3)).astype("uint8")
    np.testing.assert_allclose(
        embed(folder, images), to_numpy(embedder(images)), atol=0.02
    )
