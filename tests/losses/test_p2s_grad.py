import numpy as np
import tensorflow as tf

from keras_dml import losses


def test_the_gradient_is_that_of_a_softmax_with_cosines_for_probabilities():
    """Equation 11 of the paper, but for its factor of two."""
    labels = np.array([0, 2, 1, 1], "int32")
    cosines = tf.constant(np.random.default_rng(0).uniform(-1, 1, (4, 3)))
    with tf.GradientTape() as tape:
        tape.watch(cosines)
        value = losses.P2SGrad(dtype="float64", reduction="sum")(
            labels, cosines
        )
    gradient = tape.gradient(value, cosines)
    np.testing.assert_allclose(gradient, 2 * (cosines - np.eye(3)[labels]))
