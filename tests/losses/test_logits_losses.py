"""Closed forms and bounds of the losses on class logits."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses

RNG = np.random.default_rng(0)
LABELS = np.array([0, 3, 1, 1, 2, 0], "int32")

CROSS_ENTROPIES = (
    losses.Softmax,
    losses.NormalizedSoftmax,
    losses.ProxyNCAPlusPlus,
)
ALL = (*CROSS_ENTROPIES, losses.ProxyNCA)


def gradient_of(function, *arrays):
    variables = [tf.Variable(array) for array in arrays]
    with tf.GradientTape() as tape:
        value = function(*variables)
    return value, tape.gradient(value, variables)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("temperature", [1 / 9, 1.0])
def test_closed_form_on_orthogonal_proxies(cls, temperature):
    """A row on its own proxy, all others orthogonal: cosine 1, distance 2."""
    metric = "cosine" if cls in CROSS_ENTROPIES else "neg_squared_euclidean"
    if cls is losses.ProxyNCAPlusPlus:
        metric = "neg_squared_euclidean"
    classes, contrast = 6, (1 if metric == "cosine" else 2) / temperature
    proxies = layers.Proxies(classes, metric)
    proxies.build((None, classes))
    proxies.set_weights([np.eye(classes)])
    similarity = proxies(3 * np.eye(classes, dtype="float32"))
    loss = cls()(np.arange(classes), similarity / temperature)
    if cls is losses.ProxyNCA:
        expected = np.log(classes - 1) - contrast
    else:
        expected = np.log1p((classes - 1) * np.exp(-contrast))
    np.testing.assert_allclose(loss, expected, rtol=1e-4, atol=1e-6)


def test_float_labels_are_refused_in_fit():
    x = keras.Input((5,))
    model = keras.Model(x, layers.Proxies(4)(x))
    model.compile("sgd", losses.NormalizedSoftmax())
    with pytest.raises(ValueError, match="must be integer class labels"):
        model.fit(np.ones((6, 5)), LABELS.astype("float32"), verbose=0)


def test_proxy_nca_plus_plus_is_a_normalized_softmax_at_half_temperature():
    x = RNG.standard_normal((6, 5)).astype("float32")
    values = []
    for cls, metric, temperature in (
        (losses.ProxyNCAPlusPlus, "neg_squared_euclidean", 1 / 9),
        (losses.NormalizedSoftmax, "cosine", 1 / 18),
    ):
        proxies = layers.Proxies(4, metric)
        proxies.build(x.shape)
        weights = np.random.default_rng(1).standard_normal((4, 5))
        proxies.set_weights([weights])
        values.append(
            gradient_of(
                lambda x, p=proxies, c=cls, t=temperature: c()(
                    LABELS, p(x) / t
                ),
                x,
            )
        )
    (first, (gradient,)), (second, (expected,)) = values
    np.testing.assert_allclose(first, second, rtol=1e-5)
    np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-5)


def test_heated_gradient():
    """Heated-Up Softmax, equation 3, and its orthogonality to the embedding."""
    scale = 16.0
    proxies = layers.Proxies(4, dtype="float64")
    f = RNG.standard_normal((6, 5))
    proxies.build(f.shape)
    w = proxies.get_weights()[0].astype("float64")
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    unit = f / np.linalg.norm(f, axis=1, keepdims=True)
    loss = losses.NormalizedSoftmax(reduction="sum", dtype="float64")

    _, (by_unit,) = gradient_of(
        lambda x: loss(LABELS, scale * tf.matmul(x, w.T)), unit
    )
    p = np.exp(scale * unit @ w.T)
    p /= p.sum(axis=1, keepdims=True)
    expected = scale * (p - np.eye(4)[LABELS]) @ w
    np.testing.assert_allclose(by_unit, expected, rtol=1e-6)

    _, (by_embedding,) = gradient_of(
        lambda x: loss(LABELS, scale * proxies(x)), f
    )
    np.testing.assert_allclose(np.sum(f * by_embedding, axis=1), 0, atol=1e-10)


def test_cross_entropy_is_bounded_below_and_proxy_nca_is_not():
    logits = np.array([[1e4, 0.0, 0.0]], "float32")
    for cls in CROSS_ENTROPIES:
        assert float(cls()(np.array([0]), logits)) == 0.0
    np.testing.assert_allclose(
        losses.ProxyNCA()(np.array([0]), logits), np.log(2) - 1e4
    )


def test_proxy_nca_on_unit_vectors_reaches_its_documented_minimum():
    """The own proxy at the row, all others opposite: distances 0 and 4."""
    temperature, classes = 1 / 9, 5
    proxies = layers.Proxies(classes, "neg_squared_euclidean")
    proxies.build((None, 2))
    proxies.set_weights([np.array([[1.0, 0.0]] + 4 * [[-1.0, 0.0]])])
    logits = proxies(np.array([[2.0, 0.0]], "float32")) / temperature
    np.testing.assert_allclose(
        losses.ProxyNCA()(np.array([0]), logits),
        np.log(classes - 1) - 4 / temperature,
        rtol=1e-5,
    )


def test_proxy_nca_needs_two_classes():
    with pytest.raises(ValueError, match=r"two classes.*\(3, 1\)"):
        losses.ProxyNCA()(np.zeros(3, "int32"), np.zeros((3, 1), "float32"))


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
