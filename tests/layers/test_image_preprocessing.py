"""Preprocessing equals that of the networks it feeds."""

import keras
import numpy as np
import pytest

from keras_dml.layers.image_preprocessing import (
    ImagePreprocessing,
    preprocess_images,
)
from tests.conformance import check_layer, roundtrip, to_numpy

RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(0, 255, (2, 5, 4, 3)).astype("float32")

# The functions that `keras.applications` documents for each network.
ORACLES = {
    "caffe": keras.applications.resnet.preprocess_input,
    "tf": keras.applications.mobilenet_v2.preprocess_input,
    "torch": keras.applications.densenet.preprocess_input,
    "unit": lambda images: images / 255,
    "none": lambda images: images,
}


@pytest.mark.parametrize("mode", ORACLES)
def test_equals_the_networks_own(mode):
    expected = ORACLES[mode](IMAGES.copy())
    np.testing.assert_allclose(
        to_numpy(ImagePreprocessing(mode)(IMAGES)), expected, atol=1e-4
    )


@pytest.mark.parametrize("mode", [*ORACLES, "affine"])
def test_integers_give_what_floats_give(mode):
    arguments = {"scale": 0.5, "offset": -1.5} if mode == "affine" else {}
    integers = IMAGES.astype("uint8")
    layer = ImagePreprocessing(mode, **arguments)
    wanted = to_numpy(layer(integers.astype("float32")))
    for found in (
        layer(integers),
        preprocess_images(integers, mode, **arguments),
    ):
        dtype = keras.backend.standardize_dtype(found.dtype)
        assert dtype == "float32"
        np.testing.assert_array_equal(to_numpy(found), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ORACLES)
def test_keeps_the_promises_of_a_layer(mode, policy, tmp_path):
    check_layer(
        ImagePreprocessing, {"mode": mode}, IMAGES, (2, 5, 4, 3), tmp_path
    )


def test_gray_becomes_rgb(tmp_path):
    gray = IMAGES[..., :1]
    check_layer(
        ImagePreprocessing,
        {"mode": "caffe", "rgb": True},
        gray,
        (2, 5, 4, 3),
        tmp_path,
    )
    repeated = np.repeat(gray, 3, axis=-1)
    np.testing.assert_array_equal(
        to_numpy(ImagePreprocessing("caffe", rgb=True)(gray)),
        to_numpy(ImagePreprocessing("caffe")(repeated)),
    )


def test_rgb_leaves_color_alone():
    np.testing.assert_array_equal(
        to_numpy(ImagePreprocessing("none", rgb=True)(IMAGES)), IMAGES
    )


def test_float32_under_any_policy(policy):
    """Bfloat16 has no number between 254 and 255."""
    layer = ImagePreprocessing("none")
    images = np.full((1, 2, 2, 1), 254.3, "float32")
    assert keras.backend.standardize_dtype(layer(images).dtype) == "float32"
    np.testing.assert_array_equal(to_numpy(layer(images)), images)


def test_numbers_of_channels_may_be_of_numpy():
    arguments = {"scale": [1.0, 2.0, 3.0], "offset": [0.5, 0.0, -1.0]}
    arrays = {key: np.array(value) for key, value in arguments.items()}
    layer = roundtrip(ImagePreprocessing("affine", **arrays))
    expected = to_numpy(ImagePreprocessing("affine", **arguments)(IMAGES))
    np.testing.assert_array_equal(to_numpy(layer(IMAGES)), expected)
    with pytest.raises(ValueError, match='are for `mode="affine"'):
        ImagePreprocessing("tf", scale=arrays["scale"])


def test_config_round_trip():
    config = roundtrip(ImagePreprocessing("torch", rgb=True)).get_config()
    assert (config["mode"], config["rgb"]) == ("torch", True)


def test_unknown_mode_is_refused():
    with pytest.raises(ValueError, match=r"must be one of 'none'.*mode='bgr'"):
        ImagePreprocessing("bgr")


@pytest.mark.parametrize("mode", ["torch", "caffe"])
def test_gray_without_rgb_is_refused(mode):
    with pytest.raises(ValueError, match="gray images and `rgb=True`"):
        ImagePreprocessing(mode)(IMAGES[..., :1])
