import numpy as np
import tensorflow as tf

from keras_dml import losses

NEGATIVE = np.array([[False, True, True, True]])
NOTHING = np.zeros_like(NEGATIVE)
# Of the negatives one lies outside of the boundary of 1.2.
DISTANCE = np.array([[0.0, 0.7, 1.1, 1.5]])


def test_the_nearest_negatives_weigh_most_and_weights_are_constants():
    distance = tf.constant(DISTANCE)
    with tf.GradientTape() as tape:
        tape.watch(distance)
        loss = losses.ranked_list_loss(distance, NOTHING, NEGATIVE)
    terms = np.array([0.5, 0.1])
    weights = np.exp(10 * terms) / np.exp(10 * terms).sum()
    np.testing.assert_allclose(loss, [0.5 * weights @ terms], rtol=1e-9)
    # Were they none, the nearest would have a steeper slope than its share.
    np.testing.assert_allclose(
        tape.gradient(loss, distance),
        [[0.0, *(-0.5 * weights), 0.0]],
        rtol=1e-9,
    )


def test_a_large_scale_takes_the_nearest_negative_alone():
    loss = losses.ranked_list_loss(
        DISTANCE, NOTHING, NEGATIVE, negative_scale=1e6, balance=1.0
    )
    np.testing.assert_allclose(loss, [0.5], rtol=1e-9)


def test_positives_keep_their_spread_within_the_inner_boundary():
    distance = np.array([[0.0, 0.3, 0.79, 1.0]])
    inner = [[False, True, True, False]]
    loss = losses.ranked_list_loss(distance, np.array(inner), NOTHING)
    np.testing.assert_array_equal(loss, [0.0])
    loss = losses.ranked_list_loss(distance, NEGATIVE, NOTHING, balance=0.0)
    np.testing.assert_allclose(loss, [0.2], rtol=1e-9)
