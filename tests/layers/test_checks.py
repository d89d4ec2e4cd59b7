"""What the layers refuse that take embeddings and their labels."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import layers, losses

X = np.random.default_rng(0).standard_normal((6, 4)).astype("float32")
LABELS = np.array([0, 1, 1, 0, 2, 0], "int32")
MAKERS = [
    lambda: layers.ClassBoundaries(3, name="here"),
    lambda: layers.CrossBatchMemory(losses.Triplet(), 24, name="here"),
    lambda: layers.SampleAwareProxies(3, memory_size=24, name="here"),
]
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


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.ClassBoundaries(3, name="here"),
        lambda: layers.SampleAwareProxies(3, memory_size=24, name="here"),
        lambda: layers.SampledProxies(3, 3, name="here"),
    ],
)
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
