"""Losses on class logits: batches that lack something, and many classes."""

import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers
from tests.losses.test_logits_losses import ALL, gradient_of, naive

RNG = np.random.default_rng(0)
LOGITS = (3 * RNG.standard_normal((6, 4))).astype("float32")
BATCHES = {
    "one class only": (np.full(6, 2), LOGITS),
    "one row only": (np.array([3]), LOGITS[:1]),
    "no two rows of a class": (np.arange(4), LOGITS[:4]),
    "duplicates": (np.array([0, 0, 1, 1, 1, 1]), np.repeat(LOGITS[:3], 2, 0)),
}


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("batch", BATCHES)
def test_against_loops(cls, batch):
    labels, logits = BATCHES[batch]
    loss = cls(reduction="none")
    value, (gradient,) = gradient_of(
        lambda x: loss(labels.astype("int32"), x), logits
    )
    np.testing.assert_allclose(value, naive(cls, labels, logits), rtol=1e-5)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("cls", ALL)
def test_100_000_classes(cls):
    classes = 100_000
    logits = RNG.standard_normal((3, classes)).astype("float32")
    labels = np.array([0, classes - 1, classes - 1], "int32")
    loss = cls(reduction="none")
    value, (gradient,) = gradient_of(lambda x: loss(labels, x), logits)
    total = np.log(np.exp(logits.astype("float64")).sum(axis=1))
    np.testing.assert_allclose(
        value, total - logits[np.arange(3), labels], rtol=1e-4
    )
    assert np.isfinite(gradient).all()
    assert np.all(gradient.numpy()[np.arange(3), labels] < -0.9)


@pytest.mark.parametrize("cls", ALL)
def test_100_000_proxies(cls):
    """With the layer that makes the logits, compiled."""
    proxies = layers.Proxies(100_000)
    proxies.build((None, 4))
    labels = np.array([0, 99_999, 5, 5], "int32")
    rows = tf.Variable(RNG.standard_normal((4, 4)), dtype="float32")

    @tf.function(jit_compile=True)
    def step():
        with tf.GradientTape() as tape:
            value = cls()(labels, proxies(rows))
        return value, tape.gradient(value, [rows, proxies.proxies.value])

    value, gradients = step()
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    assert np.any(gradients[1][99_999])
