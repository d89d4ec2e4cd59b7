"""The ONNX file answers as the embedder does, for any number of images."""

import json

import keras
import numpy as np
import pytest

from keras_dml.errors import RunError
from keras_dml.export import export_embedder, export_onnx
from tests.conformance import to_numpy
from tests.export.kinds import MODELS
from tests.export.test_litert import IMAGES, InverseErrorFunction

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("tf2onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_answers_as_the_embedder(name, make_embedder, tmp_path):
    embedder = make_embedder(**MODELS[name])
    images = IMAGES[..., : embedder.input_shape[-1]].astype("float32")
    folder = export_onnx(embedder, tmp_path / "onnx")
    path = str(folder / "embedder.onnx")
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path)
    tolerance = 0.05 if "mixed" in name else 1e-5
    for count in (1, 7, 16):
        (actual,) = session.run(["embedding"], {"image": images[:count]})
        assert actual.dtype == np.float32
        np.testing.assert_allclose(
            actual, to_numpy(embedder(images[:count])), atol=tolerance
        )


def test_metadata_is_inside_and_beside(make_embedder, tmp_path):
    folder = export_onnx(
        make_embedder(), tmp_path / "onnx", metadata={"recipe": "hbn"}
    )
    beside = json.loads((folder / "manifest.json").read_text())
    session = onnxruntime.InferenceSession(folder / "embedder.onnx")
    inside = session.get_modelmeta().custom_metadata_map["keras-dml"]
    assert json.loads(inside) == beside
    assert beside["recipe"] == "hbn"
    assert beside["format"] == "onnx"
    (image,) = session.get_inputs()
    assert image.shape == ["batch", 16, 16, 3]


def test_wrong_images_are_refused_by_the_runtime(make_embedder, tmp_path):
    folder = export_onnx(make_embedder(), tmp_path / "onnx")
    session = onnxruntime.InferenceSession(folder / "embedder.onnx")
    images = IMAGES.astype("float32")
    for wrong in (IMAGES, images[0], images[:, :8]):
        with pytest.raises(Exception, match="INVALID_ARGUMENT"):
            session.run(["embedding"], {"image": wrong})


def test_an_unsupported_op_is_named_with_its_layer(make_embedder, tmp_path):
    embedder = make_embedder()
    odd = InverseErrorFunction(name="odd_layer")(embedder.output)
    with pytest.raises(RunError, match=r"no op for .*odd_layer"):
        export_onnx(keras.Model(embedder.input, odd), tmp_path / "onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_rows_of_the_comparison(make_embedder, tmp_path):
    rows = export_embedder(make_embedder(), ["onnx"], tmp_path, IMAGES)
    assert rows[1]["artifact"] == "onnx"
    assert rows[1]["worst_cosine"] > 0.99999
