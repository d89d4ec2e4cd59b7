import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.layers import GlobalKMaxPooling2D
from tests.conformance import check_layer, to_numpy

X = np.random.default_rng(0).standard_normal((2, 4, 5, 3)).astype("float32")


@pytest.mark.parametrize("k", [1, 3])
def test_layer(k, policy, tmp_path):
    check_layer(GlobalKMaxPooling2D, {"k": k}, X, (2, 3), tmp_path)


@pytest.mark.parametrize("k", [1, 2, 7, 20])
def test_averages_the_k_largest(k):
    expected = np.sort(X.reshape(2, 20, 3), axis=1)[:, -k:].mean(axis=1)
    actual = to_numpy(GlobalKMaxPooling2D(k)(X))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_ends_are_max_and_average_pooling(data_format):
    x = X if data_format == "channels_last" else X.transpose(0, 3, 1, 2)
    largest = keras.layers.GlobalMaxPooling2D(data_format)(x)
    average = keras.layers.GlobalAveragePooling2D(data_format)(x)
    np.testing.assert_array_equal(
        GlobalKMaxPooling2D(1, data_format)(x), largest
    )
    np.testing.assert_allclose(
        GlobalKMaxPooling2D(20, data_format)(x), average, atol=1e-6
    )


@pytest.mark.parametrize("k", [1, 4])
def test_gradient_reaches_the_k_largest_only(k):
    x = tf.Variable(X)
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(GlobalKMaxPooling2D(k)(x))
    gradient = np.asarray(tape.gradient(value, x)).reshape(2, 20, 3)
    order = np.argsort(np.argsort(X.reshape(2, 20, 3), axis=1), axis=1)
    np.testing.assert_allclose(gradient, (order >= 20 - k) / k, rtol=1e-6)


def test_averages_large_half_precision_activations_without_overflow():
    x = np.full((1, 8, 8, 2), 3e4, "float16")
    pooled = to_numpy(GlobalKMaxPooling2D(64, dtype="float16")(x))
    np.testing.assert_allclose(pooled, 3e4, rtol=1e-3)


def test_image_size_may_be_unknown_until_the_call():
    x = keras.Input((None, None, 3))
    model = keras.Model(x, GlobalKMaxPooling2D(4)(x))
    expected = to_numpy(GlobalKMaxPooling2D(4)(X))
    np.testing.assert_array_equal(model.predict(X, verbose=0), expected)


def test_eager_graph_and_xla_agree():
    layer = GlobalKMaxPooling2D(4)
    eager = layer(X)
    np.testing.assert_allclose(tf.function(layer)(X), eager, rtol=1e-6)
    compiled = tf.function(layer, jit_compile=True)
    np.testing.assert_allclose(compiled(X), eager, rtol=1e-6)


@pytest.mark.parametrize("k", [0, -1, 1.5, None, True])
def test_refuses_a_k_that_is_no_positive_integer(k):
    with pytest.raises(ValueError, match=f"positive integer.*k={k}"):
        GlobalKMaxPooling2D(k)


def test_refuses_more_than_there_are():
    with pytest.raises(ValueError, match=r"= 20.*Received: k=21, input_shape"):
        GlobalKMaxPooling2D(21)(X)
    with pytest.raises(ValueError, match=r"= 20.*Received: k=21"):
        GlobalKMaxPooling2D(21)(keras.Input((4, 5, 3)))


def test_refuses_an_unknown_data_format():
    with pytest.raises(ValueError, match="Received: data_format='NHWC'"):
        GlobalKMaxPooling2D(1, data_format="NHWC")


def test_refuses_another_rank():
    with pytest.raises(ValueError, match="expected ndim=4, found ndim=2"):
        GlobalKMaxPooling2D(1)(np.ones((2, 3), "float32"))
