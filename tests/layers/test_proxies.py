import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml.layers import Proxies
from tests.conformance import (
    check_layer,
    numerical_gradient,
    roundtrip,
    to_numpy,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 5)).astype("float32")


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def similarity(x, p, metric, unit_proxies=True):
    """One pair at a time, from the definitions."""
    if metric == "dot":
        return x @ (unit(p) if unit_proxies else p)
    if metric == "cosine":
        return unit(x) @ unit(p)
    return -np.sum((unit(x) - unit(p)) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["cosine", "dot", "neg_squared_euclidean"])
@pytest.mark.parametrize("centers", [1, 3])
def test_layer(metric, centers, policy, tmp_path):
    arguments = {"num_classes": 7, "metric": metric, "centers": centers}
    shape = (6, 7) if centers == 1 else (6, 7, 3)
    check_layer(Proxies, arguments, X, shape, tmp_path)


@pytest.mark.parametrize(
    "metric, unit_proxies",
    [
        ("cosine", True),
        ("dot", True),
        ("dot", False),
        ("neg_squared_euclidean", True),
    ],
)
def test_against_loops(metric, unit_proxies):
    layer = Proxies(4, metric, centers=2, unit_proxies=unit_proxies)
    actual = to_numpy(layer(X))
    proxies = layer.get_weights()[0]
    assert proxies.shape == (4, 2, 5)
    for row, c, k in np.ndindex(6, 4, 2):
        expected = similarity(X[row], proxies[c, k], metric, unit_proxies)
        np.testing.assert_allclose(actual[row, c, k], expected, atol=1e-5)


def test_squared_distance_of_equal_vectors_is_never_positive():
    layer = Proxies(50, "neg_squared_euclidean")
    x = RNG.standard_normal((50, 33)).astype("float32")
    layer.build(x.shape)
    layer.set_weights([x])
    distances = to_numpy(layer(1000 * x))
    assert distances.max() <= 0
    np.testing.assert_allclose(np.diag(distances), 0, atol=1e-6)


@pytest.mark.parametrize("metric", ["cosine", "neg_squared_euclidean"])
def test_gradient_against_differences(metric):
    layer = Proxies(3, metric, dtype="float64")
    weights = RNG.standard_normal((2, 3))
    x = X[:2].astype("float64")
    layer.build(x.shape)

    def value(x):
        return tf.reduce_sum(layer(tf.constant(x)) * weights)

    variable = tf.Variable(x)
    with tf.GradientTape() as tape:
        result = tf.reduce_sum(layer(variable) * weights)
    gradient = tape.gradient(result, variable)
    np.testing.assert_allclose(
        gradient, numerical_gradient(value, x), rtol=1e-5, atol=1e-7
    )
    # The embedding is normalized, so its length must not matter.
    np.testing.assert_allclose(
        np.sum(np.asarray(gradient) * x, axis=1), 0, atol=1e-12
    )


@pytest.mark.parametrize("metric", ["cosine", "dot", "neg_squared_euclidean"])
@pytest.mark.parametrize("scale", [0.0, 1.0, 1000.0])
def test_gradient_is_finite_at_zero_and_extreme_scale(metric, scale):
    layer = Proxies(4, metric)
    x = tf.Variable(np.repeat(X[:1], 3, axis=0) * scale)
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(layer(x))
    gradients = tape.gradient(value, [x, layer.proxies.value])
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_proxies_are_a_trained_weight_with_a_stable_path():
    x = keras.Input((5,))
    model = keras.Model(x, Proxies(3, name="proxies")(x))
    assert [v.path for v in model.trainable_variables] == ["proxies/proxies"]


def test_every_centre_starts_like_a_class_of_its_own():
    layer = Proxies(100, centers=4, initializer="scaled_fan_in")
    layer.build((None, 64))
    deviation = layer.get_weights()[0].std()
    np.testing.assert_allclose(deviation, 1 / 8, rtol=0.03)


def test_class_means():
    layer = Proxies(4)
    layer.build((None, 5))
    before = layer.get_weights()[0]
    labels = np.array([2, 0, 2, 0, 2, 3])
    layer.assign_class_means(X, labels)
    after = layer.get_weights()[0]
    for c in (0, 2, 3):
        mean = X[labels == c].mean(axis=0)
        np.testing.assert_allclose(after[c], unit(mean), rtol=1e-5)
    np.testing.assert_array_equal(after[1], before[1])


def test_class_means_of_several_centres_share_the_rows():
    layer = Proxies(2, centers=2)
    layer.assign_class_means(X, np.array([0, 0, 0, 1, 0, 0]))
    proxies = layer.get_weights()[0]
    first, second = X[[0, 2, 5]].mean(axis=0), X[[1, 4]].mean(axis=0)
    np.testing.assert_allclose(
        proxies[0], unit(np.stack([first, second])), 1e-5
    )
    np.testing.assert_allclose(proxies[1, 0], unit(X[3]), rtol=1e-5)


def test_class_means_do_not_depend_on_the_dtype_of_labels():
    labels = np.repeat(np.arange(100), 5)
    rows = RNG.standard_normal((500, 5)).astype("float32")
    found = []
    for dtype in ("int64", "uint8"):
        layer = Proxies(100, centers=5)
        layer.assign_class_means(rows, labels.astype(dtype))
        found.append(layer.get_weights()[0])
    np.testing.assert_array_equal(*found)


def test_class_means_ignore_rows_that_cancel():
    layer = Proxies(1)
    layer.build((None, 5))
    before = layer.get_weights()[0]
    layer.assign_class_means(np.stack([X[0], -X[0]]), np.array([0, 0]))
    np.testing.assert_array_equal(layer.get_weights()[0], before)


@pytest.mark.parametrize(
    "labels, message",
    [
        ([0, 1, 2, 3, 4, 5], "between 0 and 3.*from 0 to 5"),
        ([0, 1, 2, 3, 0, -1], "between 0 and 3.*from -1 to 3"),
        ([0.0] * 6, "must be integers"),
        ([0] * 5, r"labels.shape=\(5,\)"),
    ],
)
def test_class_means_check_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        Proxies(4).assign_class_means(X, np.array(labels))


def test_class_means_check_labels_of_no_rows():
    with pytest.raises(ValueError, match="must be integers.*float64"):
        Proxies(4).assign_class_means(X[:0], np.array([]))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"num_classes": 0}, "`num_classes`.*num_classes=0"),
        ({"num_classes": 3, "centers": 0}, "`centers`.*centers=0"),
        ({"num_classes": 3, "metric": "cosin"}, "mean 'cosine'"),
        (
            {"num_classes": 3, "unit_proxies": False},
            "needs `metric=\"dot\"`.*metric='cosine'",
        ),
        ({"num_classes": 3, "initializer": "he_fanout"}, "Unknown proxy init"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        Proxies(**arguments)


def test_refuses_another_rank():
    with pytest.raises(ValueError, match="expected ndim=2, found ndim=3"):
        Proxies(3)(np.ones((2, 3, 4), "float32"))


@pytest.mark.parametrize("layer", [Proxies(3, centers=2), Proxies(3)])
def test_a_layer_of_version_0_1_is_read(layer):
    config = layer.get_config()
    config["centres"] = config.pop("centers")
    again = Proxies.from_config(config)
    assert again.get_config() == layer.get_config()


def test_lengths_of_rows_and_proxies_stand_beside_their_products():
    layer = Proxies(3, "dot", unit_proxies=False, lengths=True)
    x = np.random.default_rng(0).standard_normal((2, 5)).astype("float32")
    found = keras.ops.convert_to_numpy(layer(x))
    p = keras.ops.convert_to_numpy(layer.proxies)
    assert layer.compute_output_shape((2, 5)) == found.shape
    np.testing.assert_allclose(found[..., 0], x @ p.T, rtol=1e-5)
    wanted = np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(p, axis=1))
    np.testing.assert_allclose(found[..., 1], wanted, rtol=1e-5)
    assert roundtrip(layer).lengths


@pytest.mark.parametrize(
    "arguments",
    [{}, {"metric": "dot"}, {"metric": "dot", "centers": 2}],
)
def test_lengths_need_plain_products(arguments):
    with pytest.raises(ValueError, match="`lengths` must be False unless"):
        Proxies(3, lengths=True, **arguments)
