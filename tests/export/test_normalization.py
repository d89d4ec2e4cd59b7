"""A manifest tells how the network normalizes."""

import keras
import numpy as np
import pytest

from keras_dml.export import export_litert, read_manifest
from keras_dml.export.normalization import normalization
from keras_dml.layers.image_preprocessing import MODES, ImagePreprocessing
from keras_dml.models import custom_backbone
from tests.export.clients import run_litert

AFFINE = {"scale": [0.5, 0.25, -2.0], "offset": [3.0, 0.0, -0.5]}


@pytest.mark.parametrize("mode", MODES)
def test_the_manifest_tells_how_the_network_normalizes(mode, tmp_path):
    """An artifact that only normalizes gives what the manifest says."""
    inputs = keras.Input((4, 4, 3))
    changes = AFFINE if mode == "affine" else {}
    normalized = ImagePreprocessing(mode, **changes)(inputs)
    pooled = keras.layers.GlobalAveragePooling2D()(normalized)
    folder = export_litert(keras.Model(inputs, pooled), tmp_path / "litert")
    told = read_manifest(folder)["image"]["normalization"]
    colors = np.array([[0, 100, 255], [30, 20, 10]], "uint8")
    images = np.tile(colors[:, None, None], (1, 4, 4, 1))
    ordered = colors[:, ["RGB".index(one) for one in told["order"]]]
    expected = (ordered - np.array(told["mean"])) / told["deviation"]
    np.testing.assert_allclose(
        run_litert(folder, images), expected, rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"scale": 1 / 127.5, "offset": -1.0},
            {"order": "RGB", "mean": [127.5], "deviation": [127.5]},
        ),
        (
            {"scale": 0.5, "offset": [-1.0, -2.0, -3.0]},
            {
                "order": "RGB",
                "mean": [2.0, 4.0, 6.0],
                "deviation": [2.0, 2.0, 2.0],
            },
        ),
        ({"scale": [1.0, 0.0, 1.0]}, {}),
    ],
)
def test_an_affine_backbone(changes, expected, make_embedder):
    inputs = keras.Input((16, 16, 3))
    network = keras.Model(inputs, keras.layers.Conv2D(8, 3, strides=2)(inputs))
    backbone = custom_backbone(network, "affine", **changes)
    found = normalization(make_embedder(backbone=backbone))
    assert found == {"inside_model": True, **expected}
