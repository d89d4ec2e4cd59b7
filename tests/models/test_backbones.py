"""The backbones: names, preprocessing, and what they promise."""

import keras
import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.layers import preprocess_images
from keras_dml.models import BACKBONES, get_backbone, list_backbones
from keras_dml.models.conversion import LAYOUTS
from keras_dml.models.weights import build_with_weights
from tests.conformance import to_numpy

applications = keras.applications

IMAGES = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3))
IMAGES = IMAGES.astype("float32")

# What `keras.applications` documents for each.
PREPROCESS_INPUT = {
    "resnet50": applications.resnet50.preprocess_input,
    "resnet101": applications.resnet.preprocess_input,
    "resnet50_v2": applications.resnet_v2.preprocess_input,
    "densenet121": applications.densenet.preprocess_input,
    "inception_v3": applications.inception_v3.preprocess_input,
    "xception": applications.xception.preprocess_input,
    "mobilenet": applications.mobilenet.preprocess_input,
    "mobilenet_v2": applications.mobilenet_v2.preprocess_input,
}

# Those that would preprocess by themselves, and are told not to.
INCLUDED = {
    "mobilenet_v3_small": applications.MobileNetV3Small,
    "mobilenet_v3_large": applications.MobileNetV3Large,
    "efficientnet_v2_b0": applications.EfficientNetV2B0,
    "convnext_tiny": applications.ConvNeXtTiny,
}


def test_a_backbone_prints_on_a_few_lines():
    for backbone in BACKBONES.values():
        assert "<function" not in repr(backbone)
        assert len(repr(backbone)) < 400


def test_every_backbone_has_an_oracle():
    """Those with a converter are compared with their publication there."""
    oracles = {"small_cnn", *PREPROCESS_INPUT, *INCLUDED, *LAYOUTS}
    assert oracles == set(BACKBONES)
    assert list_backbones() == list(BACKBONES)


@pytest.mark.parametrize("name", PREPROCESS_INPUT)
def test_preprocessing_is_the_documented_one(name):
    np.testing.assert_allclose(
        to_numpy(preprocess_images(IMAGES, BACKBONES[name].preprocessing)),
        PREPROCESS_INPUT[name](IMAGES.copy()),
        atol=1e-4,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", INCLUDED)
def test_preprocessing_is_the_included_one(name):
    """The network that preprocesses by itself gives the same features."""
    backbone = BACKBONES[name]
    included = INCLUDED[name](
        include_top=False, weights=None, input_shape=(32, 32, 3)
    )
    ours = backbone.builder(input_shape=(32, 32, 3), weights=None)
    ours.set_weights(included.get_weights())
    preprocessed = preprocess_images(IMAGES, backbone.preprocessing)
    np.testing.assert_allclose(
        to_numpy(ours(preprocessed)), to_numpy(included(IMAGES)), atol=1e-3
    )


@pytest.mark.parametrize("name", BACKBONES)
def test_facts_are_consistent(name):
    backbone = BACKBONES[name]
    assert backbone.min_image_size <= backbone.image_size
    assert backbone.pretrained in ("imagenet", "none")
    assert backbone.paper


def test_those_to_convert_are_those_with_a_converter():
    assert set(LAYOUTS) == {
        name for name, one in BACKBONES.items() if one.checkpoint
    }


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("weights", ["imagenet", "auto"])
def test_weights_to_convert_are_named(name, weights):
    """Never random weights in silence."""
    with pytest.raises(UsageError) as caught:
        build_with_weights(name, (32, 32, 3), weights)
    message = str(caught.value)
    assert BACKBONES[name].checkpoint in message
    assert "convert it with `keras-dml convert-weights`" in message


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYOUTS)
def test_networks_built_here_take_odd_sizes(name):
    """Maps of 22, 11, 5, 3 and 2 pixels, or 1 less."""
    shape = BACKBONES[name].builder(input_shape=(43, 43, 3)).output_shape
    assert shape[1] == shape[2] in (1, 2)


def test_unknown_name_is_refused():
    with pytest.raises(UsageError, match=r"'resnet51'. Nearest: 'resnet50'"):
        get_backbone("resnet51")
    with pytest.raises(UsageError, match="All: small_cnn, resnet50, "):
        get_backbone("resnet51")
