import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses
from tests.losses.steps import value_and_gradient

LABELS = np.array([0, 2, 2, 1], "int32")
COSINES = np.random.default_rng(0).uniform(-1, 1, (4, 5)).astype("float32")


def softplus(x):
    return np.log1p(np.exp(x))


@pytest.mark.parametrize("classes", [2, 6])
def test_closed_form_of_one_row_on_its_proxy(classes):
    proxies = layers.Proxies(classes)
    proxies.build((None, classes))
    proxies.set_weights([np.eye(classes)])
    similarities = proxies(3 * np.eye(classes, dtype="float32")[:1])
    expected = softplus(-32 * 0.9)
    expected += (classes - 1) / classes * softplus(32 * 0.1)
    np.testing.assert_allclose(
        losses.ProxyAnchor()(np.array([0]), similarities), expected, rtol=1e-5
    )


def test_gradient_weights():
    """Proxy-ISA, equation 5: what each pair weighs."""
    scale, margin = 32.0, 0.1
    loss = losses.ProxyAnchor(dtype="float64")
    _, gradient = value_and_gradient(loss, LABELS, COSINES.astype("float64"))
    for i, c in np.ndindex(COSINES.shape):
        own = np.equal(LABELS, c)
        s = COSINES[:, c].astype("float64")
        if own[i]:
            terms = np.exp(scale * (margin - s[own]))
            part = np.exp(scale * (margin - s[i])) / (1 + terms.sum())
            expected = -scale / 3 * part
        else:
            terms = np.exp(scale * (margin + s[~own]))
            part = np.exp(scale * (margin + s[i])) / (1 + terms.sum())
            expected = scale / 5 * part
        np.testing.assert_allclose(gradient[i, c], expected, rtol=1e-8)


def test_value_is_that_of_the_batch():
    values = losses.ProxyAnchor(reduction="none")(LABELS, COSINES)
    assert values.shape == (4,)
    assert len(set(values.numpy().tolist())) == 1
    order = np.array([3, 1, 0, 2])
    np.testing.assert_allclose(
        losses.ProxyAnchor()(LABELS[order], COSINES[order]), values[0], 1e-6
    )


def test_sample_weights_scale_all_of_the_loss():
    loss = losses.ProxyAnchor()
    weights = np.array([1.0, 0.0, 3.0, 0.0], "float32")
    np.testing.assert_allclose(
        loss(LABELS, COSINES, sample_weight=weights),
        loss(LABELS, COSINES),
        rtol=1e-6,
    )


def test_replicas_may_have_different_numbers_of_rows(strategy):
    """Three rows are two on one replica and one on the other."""
    x = np.random.default_rng(3).standard_normal((3, 4)).astype("float32")
    labels = np.array([1, 0, 1], "int32")

    def make_proxies():
        proxies = layers.Proxies(3)
        proxies.build((None, 4))
        proxies.set_weights([np.random.default_rng(4).standard_normal((3, 4))])
        return proxies

    expected = losses.ProxyAnchor()(labels, make_proxies()(x))
    with strategy.scope():
        proxies = make_proxies()

    @tf.function
    def step(x, labels):
        return losses.ProxyAnchor()(labels, proxies(x))

    batches = tf.data.Dataset.from_tensor_slices((x, labels)).batch(3)
    (batch,) = strategy.experimental_distribute_dataset(batches)
    results = strategy.experimental_local_results(
        strategy.run(step, args=batch)
    )
    for result in results:
        # Keras divides by the number of replicas.
        np.testing.assert_allclose(2 * result, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"scale": 0.0}, "`scale` must be a positive.*scale=0.0"),
        ({"scale": float("inf")}, "`scale` must be a positive.*scale=inf"),
        ({"margin": float("nan")}, "`margin` must be a finite.*margin=nan"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        losses.ProxyAnchor(**arguments)
