import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses
from tests.conformance import numerical_gradient, roundtrip
from tests.losses import naive_proxy_losses as naive
from tests.losses.test_proxy_losses import BATCHES, LABELS, cosines

RNG = np.random.default_rng(0)


def weighted(rows):
    s = cosines(rows, 1)
    return np.stack([s, RNG.uniform(0.01, 2, s.shape)], axis=1)


@pytest.mark.parametrize("batch", BATCHES)
def test_against_loops(batch):
    labels = BATCHES[batch]
    x = weighted(len(labels))
    expected = naive.proxy_isa(labels, x, 8.0, 0.2)
    loss = losses.ProxyISA(8.0, 0.2, reduction="none", dtype="float64")
    np.testing.assert_allclose(loss(labels, x), expected, rtol=1e-10)


@pytest.mark.parametrize("batch", BATCHES)
def test_all_weights_one_is_proxy_anchor(batch):
    labels = BATCHES[batch]
    s = cosines(len(labels), 1)
    x = np.stack([s, np.ones_like(s)], axis=1)
    isa, anchor = (
        cls(dtype="float64") for cls in (losses.ProxyISA, losses.ProxyAnchor)
    )
    # The divisor of Proxy-ISA leaves out a class that has no other rows.
    factor = 4 / 3 if len(set(labels.tolist())) == 1 else 1
    repelled = anchor(labels, s) - losses.OurLoss1(dtype="float64")(labels, s)
    expected = anchor(labels, s) + (factor - 1) * repelled
    np.testing.assert_allclose(isa(labels, x), expected, rtol=1e-10)
    np.testing.assert_allclose(isa(labels, s), anchor(labels, s), rtol=1e-12)


def test_gradient_against_differences():
    x = weighted(6)
    loss = losses.ProxyISA(8.0, 0.2, dtype="float64")
    tensor = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        value = loss(LABELS, tensor)
    expected = numerical_gradient(lambda x: float(loss(LABELS, x)), x, 1e-5)
    gradient = tape.gradient(value, tensor)
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


def test_a_scaled_weight_scales_the_exponents():
    """Twice the weights at half the scale halve both terms."""
    x = weighted(6)
    twice = x * np.array([1.0, 2.0])[:, None]
    np.testing.assert_allclose(
        2 * losses.ProxyISA(4.0, dtype="float64")(LABELS, twice),
        losses.ProxyISA(8.0, dtype="float64")(LABELS, x),
        rtol=1e-10,
    )


def test_roundtrip():
    roundtrip(losses.ProxyISA(8.0, 0.2, reduction="sum"))


def test_another_second_axis_is_refused():
    with pytest.raises(ValueError, match=r"SampleAwareProxies.*\(6, 3, 4\)"):
        losses.ProxyISA()(LABELS, np.ones((6, 3, 4), "float32"))
