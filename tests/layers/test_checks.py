"""What the layers refuse that take embeddings and their labels."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml import layers, losses

X = np.random.default_rng(0).standard_normal((6, 4)).astype("float32")
LABELS = np.array([0, 1, 1, 0, 2, 0], "int32")
MAKERS = [
    lambda: layers.ClassBoundaries(3, name="here"),
    lambda: layers.CrossBatchMemory(losses.Triplet(), 24, name="here"),
    lambda: layers.SampleAwareProxies(3, memory_size=24, name="here"),
]
NUMBERING = [
    lambda: layers.ClassBoundaries(3, name="here"),
    lambda: layers.SampleAwareProxies(3, memory_size=24, name="here"),
    lambda: layers.SampledProxies(3, 3, name="here"),
]
REMEMBERING = {"memory_size": 24, "memory_epoch": 0}
EACH = pytest.mark.parametrize("make", MAKERS)


@EACH
@pytest.mark.parametrize(
    "x, labels, received",
    [
        (X[:, :, None], LABELS, r"\(6, 4, 1\) and \(6,\)"),
        (X[:, 0], LABELS, r"\(6,\) and \(6,\)"),
        (X, LABELS[:5], r"\(6, 4\) and \(5,\)"),
        (X, np.eye(3, dtype="int32")[LABELS], r"\(6, 4\) and \(6, 3\)"),
    ],
)
def test_shapes_that_cannot_be_meant(make, x, labels, received):
    with pytest.raises(ValueError, match=f"'here'.*Received: .*{received}"):
        make()([x, labels])


@EACH
@pytest.mark.parametrize("inputs", [X, [X], {"x": X, "labels": LABELS}])
def test_other_inputs_than_a_pair(make, inputs):
    wanted = r"'here' takes the list \[embeddings, labels\]. Received"
    with pytest.raises(ValueError, match=wanted):
        make()(inputs)


@EACH
def test_when_a_model_is_built(make):
    x, label = keras.Input((3, 4)), keras.Input((), dtype="int32")
    with pytest.raises(ValueError, match=r"'here'.*\(None, 3, 4\)"):
        make()([x, label])


@EACH
def test_labels_may_be_a_column(make):
    layer = make()
    expected = layer([X, LABELS])
    np.testing.assert_array_equal(layer([X, LABELS[:, None]]), expected)


def test_another_dim_than_that_of_the_proxies():
    proxies = layers.Proxies(3, name="proxies")
    proxies(X)
    message = r"'proxies' have 4 columns.*Received: inputs.shape=\(6, 3\)"
    with pytest.raises(ValueError, match=message):
        proxies(X[:, :3])


def test_embeddings_and_memory_of_different_rank_reach_no_loss():
    loss = losses.WithMemory(losses.Triplet())
    with pytest.raises(ValueError, match=r"CrossBatchMemory.*shape=\(6,\)"):
        loss(LABELS, X[:, 0])


@pytest.mark.parametrize("make", NUMBERING)
@pytest.mark.parametrize("label", [-1, 3])
def test_a_label_without_a_class_is_named(make, label):
    """A compiled step said `indices[5] = 3 is not in [0, 3)`."""
    layer = make()
    labels = tf.constant([*LABELS[:-1], label], tf.int32)
    wanted = "labels of the layer here must lie between 0 and 2, for it has 3"
    with pytest.raises(ValueError, match=f"{wanted}.*label {label} in row 5"):
        layer([X, labels])
    step = tf.function(lambda x, y: layer([x, y]))
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        step(X, labels)
    assert wanted in str(error.value)
    assert f"Received: label] [{label}] [in row] [5]" in str(error.value)


@pytest.mark.parametrize("make", NUMBERING)
@pytest.mark.parametrize(
    "label, message",
    [
        (2**32 + 1, "between 0 and 2.*label 4294967297 in row 5"),
        (1.5, "must be integers.*label 1.5 in row 5"),
        (float("nan"), "must be integers.*label nan in row 5"),
    ],
)
def test_a_label_is_checked_as_it_is_given(make, label, message):
    """As int32, these would be of the class 1."""
    with pytest.raises(ValueError, match=message):
        make()([X, np.array([*LABELS[:-1], label])])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "float32"])
def test_labels_of_any_dtype(dtype):
    layer = layers.ClassBoundaries(300)
    expected = layer([X, LABELS])
    labels = tf.constant(LABELS, dtype)
    np.testing.assert_array_equal(layer([X, labels]), expected)
    step = tf.function(lambda x, y: layer([x, y]))
    np.testing.assert_array_equal(step(X, labels), expected)


@pytest.mark.parametrize(
    "cls, arguments, loss",
    [
        (layers.ClassBoundaries, {}, losses.Margin()),
        (layers.SampleAwareProxies, REMEMBERING, losses.ProxyISA()),
        (
            layers.SampleAwareProxies,
            {**REMEMBERING, "filter_epoch": 0},
            losses.ProxyNCAISA(),
        ),
        (
            layers.SampledProxies,
            {"sample_size": 3},
            losses.OnSampledClasses(losses.ArcFace()),
        ),
    ],
)
@pytest.mark.parametrize("label", [-1, 3, 7])
def test_a_label_without_a_class_is_nan_where_nothing_raises(
    cls, arguments, loss, label
):
    """XLA takes any index; the value looked like any other."""
    layer = cls(3, **arguments)

    @tf.function(jit_compile=True)
    def step(x, labels):
        return loss(labels, layer([x, labels], training=True))

    layer([X, LABELS])
    wrong = tf.constant([*LABELS[:4], 0, label], tf.int32)
    assert np.isnan(step(X, wrong))
    for weight in layer.weights:
        assert np.isfinite(weight).all(), weight.path
    if cls is layers.SampleAwareProxies:
        # The other rows are remembered.
        kept = int(layer.memory.position)
        assert ops.sum(layer.seen) == ops.sum(layer.memory.counts) == kept
        assert kept == 5 or "filter_epoch" in arguments
    assert np.isfinite(step(X, tf.constant(LABELS)))
