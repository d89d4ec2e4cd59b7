import numpy as np
import tensorflow as tf
from keras import ops

from keras_dml.ops.gradients import custom_gradient


@custom_gradient
def product(x, y):
    # Ten times the true gradient, to see whose it is.
    return x * y, lambda upstream: (10.0 * upstream * y, 10.0 * upstream * x)


def test_the_given_gradient_is_taken():
    x, y = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 5.0])
    with tf.GradientTape() as tape:
        value = ops.sum(2.0 * product(x, y))
    np.testing.assert_allclose(value, 26.0)
    for actual, expected in zip(
        tape.gradient(value, [x, y]), ([60, 100], [20, 40]), strict=True
    ):
        np.testing.assert_allclose(actual, expected)


def test_graph_and_xla():
    @tf.function(jit_compile=True)
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = product(x, tf.ones_like(x))
        return value, tape.gradient(value, x)

    value, gradient = step(tf.constant([1.0, 2.0]))
    np.testing.assert_allclose(value, [1, 2])
    np.testing.assert_allclose(gradient, [10, 10])
