"""Similarities along the manifold, against walks that are walked."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_dml.layers import ManifoldSimilarities
from keras_dml.layers.manifold_similarities import manifold_similarities
from tests.conformance import roundtrip


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def points(rows, proxies=3, dim=4):
    rng = np.random.default_rng(rows)
    return (
        unit(rng.standard_normal((rows, dim))),
        unit(rng.standard_normal((proxies, dim))),
    )


def walked(x, alpha, temperature, steps=400):
    """The sum over walks of every length; longer ones are less likely."""
    count = len(x)
    weights = np.zeros((count, count))
    for i, j in np.ndindex(weights.shape):
        if i != j:
            weights[i, j] = np.exp(max(x[i] @ x[j], 0.0) / temperature)
    sums = weights.sum(axis=1)
    step = weights / np.sqrt(np.outer(sums, sums))
    total, walk = np.zeros_like(step), np.eye(count)
    for _ in range(steps):
        total += walk
        walk = alpha * walk @ step
    return (1 - alpha) * total


@pytest.mark.parametrize(("alpha", "temperature"), [(0.8, 0.5), (0.3, 2.0)])
def test_a_closed_form_of_walks_of_every_length(alpha, temperature):
    rows, proxies = points(6)
    actual = manifold_similarities(rows, proxies, alpha, temperature)
    expected = walked(np.concatenate([rows, proxies]), alpha, temperature)
    np.testing.assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_low_temperature_neither_overflows_nor_underflows(dtype):
    """Two pairs of near points; nothing is near the last one."""
    near = np.concatenate([np.eye(4), np.full((1, 4), -0.5)])
    rows = near[[0, 0, 1, 1]] + 1e-3 * np.eye(4)
    found = manifold_similarities(
        unit(rows).astype(dtype), near[4:].astype(dtype), temperature=0.005
    )
    assert np.isfinite(found).all()
    expected = walked(np.concatenate([unit(rows), near[4:]]), 0.8, 0.005)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-6)


def test_where_walks_end_and_whether_they_end_alike():
    rows, proxies = points(5)
    layer = ManifoldSimilarities(3, dtype="float64")
    layer.build(rows.shape)
    # Lengths do not matter.
    layer.set_weights([2.0 * proxies])
    ends, alike = np.moveaxis(ops.convert_to_numpy(layer(3.0 * rows)), 2, 0)
    walks = walked(np.concatenate([rows, proxies]), 0.8, 0.5)
    np.testing.assert_allclose(ends, walks[:5, 5:], rtol=1e-6)
    expected = unit(walks[:5]) @ unit(walks[5:]).T
    np.testing.assert_allclose(alike, expected, rtol=1e-6)


def test_the_order_of_the_rows_does_not_matter():
    rows, _ = points(6)
    layer = ManifoldSimilarities(3, dtype="float64")
    order = np.random.default_rng(0).permutation(6)
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(rows))[order],
        layer(rows[order]),
        rtol=1e-9,
    )


def test_equal_rows_and_one_row_have_finite_gradients():
    import tensorflow as tf

    cases = (np.ones((4, 3)), np.zeros((2, 3)), np.ones((1, 3)))
    for rows, temperature in itertools.product(cases, (0.5, 0.005)):
        layer = ManifoldSimilarities(2, temperature=temperature)
        x = tf.Variable(rows, dtype="float32")
        with tf.GradientTape() as tape:
            value = ops.sum(layer(x) ** 2)
        gradient = tape.gradient(value, [x, layer.proxies.value])
        assert all(np.isfinite(one).all() for one in gradient)


def test_config_and_weights_come_back(tmp_path):
    roundtrip(ManifoldSimilarities(4, alpha=0.5, temperature=0.3))
    inputs = keras.Input((5,))
    layer = ManifoldSimilarities(4, initializer="he_fan_out")
    model = keras.Model(inputs, layer(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    x = np.random.default_rng(0).standard_normal((3, 5)).astype("float32")
    np.testing.assert_allclose(loaded(x), model(x))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_proxies": 0}, "`num_proxies` must be a positive"),
        ({"alpha": 1.0}, "`alpha` must be a number in"),
        ({"temperature": 0.0}, "`temperature` must be"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ManifoldSimilarities(**arguments)
