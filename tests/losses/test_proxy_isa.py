import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses
from tests.conformance import numerical_gradient, roundtrip
from tests.losses import naive_proxy_losses as naive
from tests.losses.naive_weighted_exponents import join
from tests.losses.test_proxy_losses import BATCHES, LABELS, cosines

RNG = np.random.default_rng(0)


def weights_like(s):
    return RNG.uniform(0.01, 2, s.shape)


def value_and_gradient(labels, x, loss=None):
    loss = loss or losses.ProxyISA(dtype=x.dtype.name)
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(labels, x)
    return value, tape.gradient(value, x)


@pytest.mark.parametrize("batch", BATCHES)
def test_against_loops(batch):
    labels = BATCHES[batch]
    s = cosines(len(labels), 1)
    w = weights_like(s)
    expected = naive.proxy_isa(labels, np.stack([s, w], axis=1), 8.0, 0.2)
    x = join(labels, s, w, 8.0, 0.2)
    loss = losses.ProxyISA(reduction="none", dtype="float64")
    np.testing.assert_allclose(loss(labels, x), expected, rtol=1e-10)
    single = losses.ProxyISA(reduction="none")(labels, x.astype("float32"))
    np.testing.assert_allclose(single, expected, rtol=1e-5)


@pytest.mark.parametrize("batch", BATCHES)
def test_all_weights_one_is_proxy_anchor(batch):
    labels = BATCHES[batch]
    s = cosines(len(labels), 1)
    isa = losses.ProxyISA(dtype="float64")(labels, join(labels, s, 1.0 + 0 * s))
    anchor = losses.ProxyAnchor(dtype="float64")(labels, s)
    # The divisor of Proxy-ISA leaves out a class that has no other rows.
    factor = 4 / 3 if len(set(labels.tolist())) == 1 else 1
    repelled = anchor - losses.OurLoss1(dtype="float64")(labels, s)
    np.testing.assert_allclose(
        isa, anchor + (factor - 1) * repelled, rtol=1e-10
    )


@pytest.mark.parametrize("batch", BATCHES)
def test_gradient_against_differences(batch):
    """Of all exponents; the weights in the last columns have none."""
    labels = BATCHES[batch]
    s = cosines(len(labels), 1)
    x = join(labels, s, weights_like(s), 8.0, 0.2)
    loss = losses.ProxyISA(dtype="float64")
    _, gradient = value_and_gradient(labels, x)
    expected = numerical_gradient(lambda x: float(loss(labels, x)), x, 1e-5)
    expected[:, :, -2:] = 0.0
    np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


def test_eager_graph_and_xla_agree():
    s = cosines(6, 1)
    x = tf.constant(join(LABELS, s, weights_like(s)), "float32")
    run = lambda x: value_and_gradient(LABELS, x)  # noqa: E731
    expected = run(x)
    for compiled in (tf.function(run), tf.function(run, jit_compile=True)):
        for actual, wanted in zip(compiled(x), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("size", [0.0, 1e3, -1e3])
def test_extreme_exponents_are_finite(size):
    s = size * np.ones_like(cosines(6, 1))
    x = join(LABELS, s, weights_like(s)).astype("float32")
    value, gradient = value_and_gradient(LABELS, x)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_computes_in_float32_under_any_policy(policy):
    s = cosines(6, 1)
    half = tf.cast(join(LABELS, s, weights_like(s), 8.0), "float16")
    loss = losses.ProxyISA()
    assert loss(LABELS, half).dtype == "float32"
    expected = losses.ProxyISA(dtype="float64")(
        LABELS, tf.cast(half, "float64")
    )
    np.testing.assert_allclose(loss(LABELS, half), expected, rtol=1e-5)


def test_roundtrip():
    roundtrip(losses.ProxyISA(reduction="sum", name="other"))


@pytest.mark.parametrize("shape", [(6, 4), (6, 3, 4)])
def test_another_shape_is_refused(shape):
    message = r"'proxy_isa' must be the output of `SampleAwareProxies`.*\(6, "
    with pytest.raises(ValueError, match=message):
        losses.ProxyISA()(LABELS, np.ones(shape, "float32"))


@pytest.mark.parametrize("dtype", ["float16", "mixed_bfloat16"])
def test_half_precision_is_refused(dtype):
    with pytest.raises(ValueError, match="half precision.*float16"):
        losses.ProxyISA(dtype=dtype)


@pytest.mark.parametrize(
    "labels, message",
    [
        (LABELS.astype("float32"), "'proxy_isa'.*dtype float32.*astype"),
        (np.eye(4, dtype="int32")[LABELS], r"'proxy_isa'.*one-hot.*\(6, 4\)"),
        (LABELS[:5], r"'proxy_isa'.*same number of rows.*\(5,\)"),
    ],
)
def test_labels_are_checked(labels, message):
    s = cosines(6, 1)
    x = join(LABELS, s, weights_like(s)).astype("float32")
    with pytest.raises(ValueError, match=message):
        losses.ProxyISA()(labels, x)
