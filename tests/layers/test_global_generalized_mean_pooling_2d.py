import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.layers import GlobalGeneralizedMeanPooling2D
from tests.conformance import check_layer, numerical_gradient, to_numpy

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 4, 5, 3)).astype("float32")
POSITIVE = (np.abs(X) + 0.1).astype("float32")


def naive(images, p, epsilon=1e-6):
    """Activation by activation, in float64."""
    pooled = np.zeros((len(images), images.shape[3]))
    for row, image in enumerate(images.astype("float64")):
        for channel in range(images.shape[3]):
            values = [
                max(image[h, w, channel], epsilon) ** p
                for h in range(image.shape[0])
                for w in range(image.shape[1])
            ]
            pooled[row, channel] = (sum(values) / len(values)) ** (1 / p)
    return pooled


@pytest.mark.parametrize("trainable_p", [False, True])
def test_layer(trainable_p, policy, tmp_path):
    arguments = {"p": 2.5, "trainable_p": trainable_p, "epsilon": 1e-4}
    check_layer(GlobalGeneralizedMeanPooling2D, arguments, X, (2, 3), tmp_path)


@pytest.mark.parametrize("p", [0.5, 1.0, 3.0, 7.5])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("trainable_p", [False, True])
def test_equals_the_naive_mean(p, data_format, trainable_p):
    x = X if data_format == "channels_last" else X.transpose(0, 3, 1, 2)
    layer = GlobalGeneralizedMeanPooling2D(
        p, trainable_p, data_format=data_format
    )
    np.testing.assert_allclose(layer(x), naive(X, p), rtol=1e-5)


def test_ends_are_average_and_max_pooling():
    average = keras.layers.GlobalAveragePooling2D()(POSITIVE)
    largest = keras.layers.GlobalMaxPooling2D()(POSITIVE)
    layer = GlobalGeneralizedMeanPooling2D
    np.testing.assert_allclose(layer(1.0)(POSITIVE), average, rtol=1e-5)
    np.testing.assert_allclose(layer(1e4)(POSITIVE), largest, rtol=1e-3)


@pytest.mark.parametrize("p", [1.0, 3.0, 50.0])
@pytest.mark.parametrize("size", [0.0, 1e-6, 1e30])
def test_equal_activations_stay_and_have_finite_gradients(p, size):
    x = tf.fill((1, 2, 2, 1), tf.constant(size, "float32"))
    layer = GlobalGeneralizedMeanPooling2D(p, trainable_p=True)
    layer.build(x.shape)
    with tf.GradientTape() as tape:
        tape.watch(x)
        pooled = layer(x)
    gradients = tape.gradient(pooled, [x, layer.exponent.value])
    np.testing.assert_allclose(pooled, [[max(size, 1e-6)]], rtol=1e-5)
    assert all(np.isfinite(one).all() for one in gradients)


def test_gradients_against_differences():
    x = np.abs(RNG.standard_normal((1, 2, 3, 2))) + 0.1
    layer = GlobalGeneralizedMeanPooling2D(
        3.0, trainable_p=True, dtype="float64"
    )
    layer.build(x.shape)
    constant = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(constant)
        total = tf.reduce_sum(layer(constant) ** 2)
    found, of_p = tape.gradient(total, [constant, layer.exponent.value])
    wanted = numerical_gradient(lambda x: np.sum(naive(x, 3.0) ** 2), x)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    wanted = numerical_gradient(
        lambda p: np.sum(naive(x, float(p)) ** 2), np.array(3.0)
    )
    np.testing.assert_allclose(of_p, wanted, atol=1e-6)


def test_large_half_precision_activations_do_not_overflow():
    x = np.full((1, 8, 8, 2), 3e4, "float16")
    pooled = GlobalGeneralizedMeanPooling2D(dtype="float16")(x)
    np.testing.assert_allclose(to_numpy(pooled), 3e4, rtol=1e-3)


def test_image_size_may_be_unknown_until_the_call():
    x = keras.Input((None, None, 3))
    model = keras.Model(x, GlobalGeneralizedMeanPooling2D()(x))
    np.testing.assert_allclose(
        model.predict(X, verbose=0), naive(X, 3.0), rtol=1e-5
    )


def test_the_exponent_is_trained_and_saved(tmp_path):
    x = keras.Input((4, 5, 3))
    layer = GlobalGeneralizedMeanPooling2D(2.0, trainable_p=True, name="gem")
    model = keras.Model(x, layer(x))
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.train_on_batch(POSITIVE, POSITIVE.max(axis=(1, 2)))
    assert float(layer.exponent) > 2.0
    model.save(tmp_path / "model.keras")
    revived = keras.saving.load_model(tmp_path / "model.keras")
    assert float(revived.get_layer("gem").exponent) == float(layer.exponent)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"p": 0}, "`p` must be a positive number.*p=0"),
        ({"p": "3"}, "`p` must be a positive number.*p='3'"),
        ({"trainable_p": 1}, "`trainable_p` must be True or False"),
        ({"epsilon": 0.0}, "`epsilon` must be a positive number"),
        ({"data_format": "NHWC"}, "Received: data_format='NHWC'"),
    ],
)
def test_refused_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        GlobalGeneralizedMeanPooling2D(**arguments)


def test_refuses_another_rank():
    with pytest.raises(ValueError, match="expected ndim=4, found ndim=2"):
        GlobalGeneralizedMeanPooling2D()(np.ones((2, 3), "float32"))
