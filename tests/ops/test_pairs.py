import numpy as np
import tensorflow as tf

from keras_dml.ops.pairs import Pairs, pair_similarities

RNG = np.random.default_rng(0)


def test_rows_against_themselves_have_the_gradient_of_both_sides():
    x, weights = RNG.standard_normal((4, 3)), RNG.standard_normal((4, 4))
    gradients = []
    for copy in (lambda x: x, tf.identity):
        rows = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(rows)
            pairs = Pairs(rows, copy(rows), None, None)
            value = tf.reduce_sum(weights * pair_similarities(pairs))
        np.testing.assert_allclose(value, np.sum(weights * (x @ x.T)))
        gradients.append(tape.gradient(value, rows))
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-12)
