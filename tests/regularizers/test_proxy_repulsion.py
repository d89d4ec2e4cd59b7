import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses, regularizers
from keras_dml.ops import similarities
from tests.conformance import numerical_gradient, roundtrip
from tests.losses import naive_proxy_losses as naive

P = np.random.default_rng(0).standard_normal((7, 5))


def value_and_gradient(proxies):
    proxies = tf.convert_to_tensor(proxies)
    with tf.GradientTape() as tape:
        tape.watch(proxies)
        value = regularizers.ProxyRepulsion(8.0, 0.2, strength=0.5)(proxies)
    return value, tape.gradient(value, proxies)


def test_against_loops():
    unit = P / np.linalg.norm(P, axis=1, keepdims=True)
    expected = 0.5 * naive.mutual_repulsion(unit @ unit.T, 8.0, 0.2)
    value, gradient = value_and_gradient(P)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    differences = numerical_gradient(
        lambda p: float(value_and_gradient(p)[0]), P
    )
    np.testing.assert_allclose(gradient, differences, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("entries", [1, 21, 48])
@pytest.mark.parametrize("jit_compile", [None, False, True])
def test_blocks_do_not_matter(entries, jit_compile, monkeypatch):
    expected = value_and_gradient(P)
    monkeypatch.setattr(similarities, "BLOCK_ENTRIES", entries)
    function = value_and_gradient
    if jit_compile is not None:
        function = tf.function(function, jit_compile=jit_compile)
    for actual, wanted in zip(function(P), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-12)


def test_orthogonal_proxies():
    value = regularizers.ProxyRepulsion(4.0, 0.1)(np.eye(6))
    np.testing.assert_allclose(value, np.log1p(5 * np.exp(0.4)))


@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
def test_equal_and_zero_proxies_are_finite(size):
    value, gradient = value_and_gradient(np.full((4, 3), size, "float32"))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_one_class_has_nothing_to_repel():
    value, gradient = value_and_gradient(P[:1])
    assert value == 0
    assert not np.any(gradient)


def test_roundtrip_alone_and_in_a_layer():
    roundtrip(regularizers.ProxyRepulsion(8.0, 0.2, 0.5))
    layer = layers.Proxies(3, regularizer=regularizers.ProxyRepulsion(8.0))
    assert roundtrip(layer).regularizer.scale == 8.0


def test_needs_one_proxy_for_each_class():
    with pytest.raises(ValueError, match=r"one for each class.*\(3, 2, 5\)"):
        regularizers.ProxyRepulsion()(np.ones((3, 2, 5)))


def test_a_model_trains_both_terms_of_our_loss_1():
    """The loss that `fit` reports is that of the deck."""
    x = keras.Input((5,))
    proxies = layers.Proxies(
        7, regularizer=regularizers.ProxyRepulsion(8.0, 0.2), name="proxies"
    )
    model = keras.Model(x, proxies(x))
    model.compile("sgd", losses.OurLoss1(8.0, 0.2))
    rows = np.random.default_rng(1).standard_normal((4, 5)).astype("float32")
    labels = np.array([0, 5, 5, 1], "int32")
    unit = proxies.get_weights()[0]
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    expected = naive.our_loss_1(labels, proxies(rows).numpy(), 8.0, 0.2)[0]
    expected += naive.mutual_repulsion(unit @ unit.T, 8.0, 0.2)
    np.testing.assert_allclose(
        model.evaluate(rows, labels, verbose=0), expected, rtol=1e-4
    )
