import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_dml.ops.similarities import products_with_unit_rows, unit_rows
from tests.conformance import to_numpy


def test_rows_have_length_one_at_any_scale():
    x = np.random.default_rng(0).standard_normal((6, 5)).astype("float32")
    unit = to_numpy(unit_rows(x))
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-6)
    for scale in (1e-4, 1e3, 1e15):
        np.testing.assert_allclose(unit_rows(scale * x), unit, rtol=1e-5)


def test_zero_vector_stays_zero_with_a_finite_gradient():
    x = tf.Variable([[0.0, 0.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        unit = unit_rows(x)
        value = tf.reduce_sum(unit)
    np.testing.assert_allclose(unit, [[0, 0], [0.6, 0.8]], rtol=1e-6)
    assert np.isfinite(tape.gradient(value, x)).all()


@pytest.mark.parametrize("entry", [20.0, 1e-4])
def test_half_precision_neither_overflows_nor_underflows(entry):
    unit = unit_rows(np.full((1, 512), entry, "float16"))
    assert unit.dtype == "float16"
    np.testing.assert_allclose(to_numpy(unit), 512**-0.5, rtol=1e-3)


def value_and_gradients(products, x, y, upstream):
    x, y = tf.constant(x), tf.constant(y)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        value = products(x, y)
    return [value, *tape.gradient(value, [x, y], tf.constant(upstream))]


@pytest.mark.parametrize("length", [0.0, 1e-7, 1e-5, 1.0, 1e8])
def test_products_are_those_with_the_unit_rows(length):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((3, 5)), rng.standard_normal((4, 5))
    y[1] *= length
    upstream = rng.standard_normal((3, 4))
    actual = value_and_gradients(
        lambda x, y: products_with_unit_rows(x, y, scale=2.0), x, y, upstream
    )
    expected = value_and_gradients(
        lambda x, y: 2.0 * ops.matmul(x, ops.transpose(unit_rows(y))),
        x,
        y,
        upstream,
    )
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("entry", [200.0, 1e-4])
def test_products_in_half_precision_do_not_overflow(entry):
    y = np.full((2, 512), entry, "float16")
    products = products_with_unit_rows(unit_rows(y), y)
    assert products.dtype == "float16"
    np.testing.assert_allclose(to_numpy(products), 1, rtol=1e-2)
