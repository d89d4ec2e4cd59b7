"""The network of the peer's side computes what Keras' does."""

import importlib.util

import keras
import numpy as np
import pytest

from tests.conftest import ROOT

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def peer():
    path = ROOT / "benchmarks" / "peers" / "mobilenet_v2_torch.py"
    spec = importlib.util.spec_from_file_location("mobilenet_v2_torch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain_network(side):
    return keras.applications.MobileNetV2(
        include_top=False,
        weights=None,
        input_shape=(side, side, 3),
        pooling="avg",
    )


@pytest.fixture(scope="module")
def weights():
    """Random weights, also of batch normalization."""
    keras.utils.set_random_seed(0)
    network = plain_network(64)
    generator = np.random.default_rng(0)
    for layer in network.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            values = layer.get_weights()
            layer.set_weights(
                [generator.uniform(0.8, 1.2, one.shape) for one in values]
            )
    return network.get_weights()


@pytest.mark.slow
# Strided layers pad even sides behind the image and odd ones on both sides.
@pytest.mark.parametrize("side", [64, 75])
def test_same_features(peer, weights, side):
    network = plain_network(side)
    network.set_weights(weights)
    images = np.random.default_rng(1).integers(0, 256, (2, side, side, 3))
    images = images.astype(np.float32)
    expected = network.predict(images / 127.5 - 1, verbose=0)
    converted = peer.mobilenet_v2(weights)
    with torch.no_grad():
        features = converted(peer.channels_first(images)).numpy()
    assert np.ptp(expected) > 0.1
    difference = np.abs(features - expected).max()
    assert difference < 1e-5 * np.abs(expected).max()


def test_weights_of_another_network_are_refused(peer, weights):
    with pytest.raises(ValueError, match="more arrays"):
        peer.mobilenet_v2([*weights, weights[-1]])
    kernel, gamma, *others = weights
    with pytest.raises(ValueError, match="do not fit"):
        peer.mobilenet_v2([kernel, gamma[:5], *others])
