import numpy as np
import tensorflow as tf

from keras_dml.ops.reductions import log_one_plus_sum_exp

Z = np.random.default_rng(0).standard_normal((5, 4))
MASK = np.random.default_rng(1).uniform(size=(5, 4)) < 0.5


def test_against_the_formula():
    for axis in (0, 1):
        expected = np.log(1 + np.sum(MASK * np.exp(Z), axis=axis))
        np.testing.assert_allclose(
            log_one_plus_sum_exp(Z, MASK, axis), expected, rtol=1e-12
        )


def test_nothing_selected_is_zero_with_zero_gradient():
    z = tf.constant([[3.0, 1e30], [float("inf"), -1e30]])
    with tf.GradientTape() as tape:
        tape.watch(z)
        value = log_one_plus_sum_exp(z, np.zeros((2, 2), bool), axis=0)
    np.testing.assert_array_equal(value, [0, 0])
    np.testing.assert_array_equal(tape.gradient(value, z), np.zeros((2, 2)))


def test_large_and_small_exponents():
    z = tf.constant([[1e4, -1e4, -20.0, 0.0]])
    with tf.GradientTape() as tape:
        tape.watch(z)
        value = log_one_plus_sum_exp(z, np.ones((1, 4), bool), axis=0)
    # A small value is not rounded away next to the 1.
    np.testing.assert_allclose(
        value, [1e4, 0, np.exp(-20.0), np.log(2)], rtol=1e-6
    )
    np.testing.assert_allclose(
        tape.gradient(value, z), [[1, 0, np.exp(-20.0), 0.5]], rtol=1e-6
    )
