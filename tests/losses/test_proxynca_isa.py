import keras
import numpy as np
import pytest

from keras_dml import callbacks, layers, losses
from tests.losses import naive_proxy_losses as naive
from tests.losses.cases import BATCHES, LABELS, cosines
from tests.losses.naive_weighted_exponents import join

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_against_loops(batch, margin):
    labels = BATCHES[batch]
    s = cosines(labels)
    w = RNG.uniform(0.01, 2, s.shape)
    expected = naive.proxynca_isa(labels, s, w, margin=margin)
    x = join(labels, s, w, 12.0, margin)
    loss = losses.ProxyNCAISA(reduction="none", dtype="float64")
    np.testing.assert_allclose(loss(labels, x), expected, rtol=1e-10)
    single = losses.ProxyNCAISA(reduction="none")(labels, x.astype("float32"))
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=1e-5)


def test_all_weights_one_is_proxy_nca_of_scaled_cosines():
    s = cosines(LABELS)
    np.testing.assert_allclose(
        losses.ProxyNCAISA(dtype="float64")(
            LABELS, join(LABELS, s, 1.0 + 0 * s, 12.0, 0.0)
        ),
        losses.ProxyNCA(dtype="float64")(LABELS, 12.0 * s),
        rtol=1e-12,
    )


def test_needs_two_classes():
    x = join(np.zeros(3, int), np.ones((3, 1)), np.ones((3, 1)))
    with pytest.raises(ValueError, match="two classes.*Received: 1"):
        losses.ProxyNCAISA()(np.zeros(3, "int32"), x)


def test_another_shape_is_refused():
    message = r"'proxynca_isa' must be the output of.*\(8, 4\)"
    with pytest.raises(ValueError, match=message):
        losses.ProxyNCAISA()(LABELS, np.ones((8, 4), "float32"))


def trained(head):
    keras.utils.set_random_seed(0)
    x = keras.Input((6,))
    label = keras.Input((), dtype="int32")
    h = layers.EmbeddingHead(5, name="head")(x)
    if head == "sample_aware":
        output = layers.SampleAwareProxies(
            4,
            scale=12.0,
            margin=0.0,
            memory_size=9,
            positive_weights=False,
            negative_weights=False,
        )([h, label])
        loss = losses.ProxyNCAISA()
    else:
        h = layers.Proxies(4, initializer="he_fan_out")(h)
        output = layers.ScaledLogits(12.0)(h)
        loss = losses.ProxyNCA()
    model = keras.Model([x, label], output)
    model.compile(keras.optimizers.SGD(0.1), loss)
    rows = np.random.default_rng(1).standard_normal((24, 6)).astype("float32")
    labels = (np.arange(24) % 4).astype("int32")
    counting = [callbacks.CountEpochs()] if head == "sample_aware" else []
    history = model.fit(
        [rows, labels],
        labels,
        batch_size=8,
        epochs=5,
        shuffle=False,
        verbose=0,
        callbacks=counting,
    )
    return history.history["loss"]


@pytest.mark.slow
def test_trains_as_proxy_nca_without_weights():
    expected = trained("proxies")
    assert expected[-1] < expected[0]
    np.testing.assert_allclose(trained("sample_aware"), expected, rtol=1e-4)
