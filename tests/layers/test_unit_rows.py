import numpy as np
import pytest
import tensorflow as tf

from keras_dml.layers import unit_rows
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
