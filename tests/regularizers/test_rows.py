"""Regularizers of the rows of a matrix, against loops and differences."""

from typing import get_args

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import regularizers
from keras_dml.config.sections import ProxiesConfig
from keras_dml.layers import Proxies
from keras_dml.regularizers.registry import PROXY_REGULARIZERS
from tests.conformance import numerical_gradient, roundtrip

W = np.random.default_rng(0).standard_normal((7, 5))
LENGTHS = np.linalg.norm(W, axis=1)


def nearest_other(w):
    unit = w / np.linalg.norm(w, axis=1, keepdims=True)
    return [
        max(unit[c] @ unit[k] for k in range(len(w)) if k != c)
        for c in range(len(w))
    ]


CASES = {
    "center_invariance": (
        regularizers.CenterInvariance(0.5),
        0.5 * np.mean((LENGTHS**2 - np.mean(LENGTHS**2)) ** 2) / 4,
    ),
    "regular_face": (
        regularizers.RegularFace(0.5),
        0.5 * np.mean(nearest_other(W)),
    ),
    "zero_mean": (
        regularizers.ZeroMean(0.5),
        0.5 * np.mean(np.abs(W.sum(axis=1))),
    ),
    "lp_norm": (regularizers.LpNorm(0.5), 0.5 * np.mean(LENGTHS)),
    "lp_norm_of_1": (
        regularizers.LpNorm(0.5, p=1.0),
        0.5 * np.mean(np.abs(W).sum(axis=1)),
    ),
    "lp_norm_of_3_squared": (
        regularizers.LpNorm(p=3.0, power=2.0),
        np.mean((np.abs(W) ** 3).sum(axis=1) ** (2 / 3)),
    ),
}


def value_and_gradient(regularizer, w):
    w = tf.convert_to_tensor(w)
    with tf.GradientTape() as tape:
        tape.watch(w)
        value = regularizer(w)
    return value, tape.gradient(value, w)


@pytest.mark.parametrize("name", CASES)
def test_against_loops_and_differences(name):
    regularizer, expected = CASES[name]
    value, gradient = value_and_gradient(regularizer, W)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    differences = numerical_gradient(lambda w: float(regularizer(w)), W)
    np.testing.assert_allclose(gradient, differences, atol=1e-6)


@pytest.mark.parametrize("size", [0.0, 1.0, 1e6])
@pytest.mark.parametrize("name", CASES)
def test_equal_and_zero_rows_are_finite(name, size):
    value, gradient = value_and_gradient(
        CASES[name][0], np.full((4, 3), size, "float32")
    )
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_a_single_class_has_no_nearest_other():
    """The place of the class itself, -2, was its nearest cosine."""
    value, gradient = value_and_gradient(regularizers.RegularFace(), W[:1])
    assert value == 0
    assert not np.any(gradient)


@pytest.mark.parametrize("name", CASES)
def test_roundtrip_alone_and_in_a_layer(name):
    regularizer, _ = CASES[name]
    revived = roundtrip(regularizer)
    assert float(revived(W)) == float(regularizer(W))
    layer = roundtrip(Proxies(3, regularizer=regularizer))
    assert type(layer.regularizer) is type(regularizer)


@pytest.mark.parametrize("name", ["zero_mean", "lp_norm"])
def test_embeddings_are_regularized_by_their_layer(name):
    regularizer, expected = CASES[name]

    def added(regularizer):
        x = keras.Input((5,))
        layer = keras.layers.Activation(
            "linear", activity_regularizer=regularizer
        )
        model = keras.Model(x, layer(x))
        model(W.astype("float32"))
        return float(model.losses[0])

    # Keras from 3.14 on divides by the number of rows as well.
    share = added(keras.regularizers.L2(1.0)) / np.sum(W**2)
    assert share == pytest.approx(1) or share == pytest.approx(1 / len(W))
    np.testing.assert_allclose(added(regularizer), share * expected, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_several_centers_are_refused(name):
    with pytest.raises(ValueError, match=r"`x` must .*Received"):
        CASES[name][0](np.ones((2, 3, 4)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: regularizers.RegularFace(-1.0), "`strength`"),
        (lambda: regularizers.CenterInvariance(float("nan")), "`strength`"),
        (lambda: regularizers.ZeroMean("a"), "`strength`"),
        (lambda: regularizers.LpNorm(p=0.5), "`p` must be"),
        (lambda: regularizers.LpNorm(power=1e9), "`power` must be"),
    ],
)
def test_arguments_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_recipes_name_each_of_them():
    names = get_args(ProxiesConfig.model_fields["regularizer"].annotation)
    assert {*names} == {"none", *PROXY_REGULARIZERS}
    classes = {*PROXY_REGULARIZERS.values()}
    assert classes == {
        value
        for value in vars(regularizers).values()
        if isinstance(value, type)
    }
