import numpy as np

from keras_dml import losses
from tests.losses.steps import value_and_gradient


def test_the_gradient_is_that_of_a_softmax_with_cosines_for_probabilities():
    """Equation 11 of the paper, but for its factor of two."""
    labels = np.array([0, 2, 1, 1], "int32")
    cosines = np.random.default_rng(0).uniform(-1, 1, (4, 3))
    loss = losses.P2SGrad(dtype="float64", reduction="sum")
    _, gradient = value_and_gradient(loss, labels, cosines)
    np.testing.assert_allclose(gradient, 2 * (cosines - np.eye(3)[labels]))
