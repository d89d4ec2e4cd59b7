import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.layers import Proxies
from keras_dml.regularizers import CenterDistance
from tests.conformance import numerical_gradient, roundtrip

W = np.random.default_rng(0).standard_normal((3, 4, 5))


def test_against_loops():
    unit = W / np.linalg.norm(W, axis=-1, keepdims=True)
    total = 0.0
    for c in range(3):
        for s in range(4):
            for t in range(s):
                total += np.sqrt(2 + 1e-5 - 2 * unit[c, s] @ unit[c, t])
    expected = 0.7 * total / (3 * 4 * 3)
    np.testing.assert_allclose(CenterDistance(0.7)(W), expected, rtol=1e-10)


def test_gradient_against_differences():
    w = tf.Variable(W)
    with tf.GradientTape() as tape:
        value = CenterDistance()(w)
    expected = numerical_gradient(lambda w: float(CenterDistance()(w)), W)
    np.testing.assert_allclose(tape.gradient(value, w), expected, atol=1e-8)


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_equal_and_zero_centers_are_finite(size):
    w = tf.Variable(np.full((2, 3, 4), size, "float32"))
    with tf.GradientTape() as tape:
        value = CenterDistance()(w)
    assert np.isfinite(value)
    assert np.isfinite(tape.gradient(value, w)).all()


def test_roundtrip_alone_and_in_a_layer():
    roundtrip(CenterDistance(0.3))
    layer = Proxies(3, centers=2, regularizer=CenterDistance(0.3))
    assert roundtrip(layer).regularizer.strength == 0.3


def test_is_a_loss_of_the_layer():
    x = keras.Input((5,))
    layer = Proxies(3, centers=4, regularizer=CenterDistance(0.3))
    model = keras.Model(x, layer(x))
    (value,) = model.losses
    np.testing.assert_allclose(value, CenterDistance(0.3)(layer.proxies))


@pytest.mark.parametrize("strength", [-1.0, float("nan")])
def test_strength_is_checked(strength):
    with pytest.raises(ValueError, match=f"`strength`.*strength={strength}"):
        CenterDistance(strength)


@pytest.mark.parametrize("shape", [(3, 5), (3, 1, 5)])
def test_needs_centers(shape):
    with pytest.raises(ValueError, match=r"two centers.*shape \(3,"):
        CenterDistance()(np.ones(shape))
