import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses
from keras_dml.losses.sphereface import cosine_of_multiple

LABELS = np.array([0, 2, 1, 1], "int32")
COSINES = np.random.default_rng(0).uniform(-0.9, 0.9, (4, 3))


@pytest.mark.parametrize("times", [1, 2, 3, 4, 7])
def test_psi_is_the_cosine_of_the_multiple_and_goes_on_falling(times):
    angles = np.linspace(0, np.pi, 998)
    value, slope = cosine_of_multiple(tf.constant(np.cos(angles)), times)
    turns = np.minimum(np.floor(times * angles / np.pi), times - 1)
    wanted = (-1.0) ** turns * np.cos(times * angles) - 2 * turns
    np.testing.assert_allclose(value, wanted, atol=1e-9)
    assert np.all(np.diff(value) < 0)
    assert np.all(slope > -1e-9)
    np.testing.assert_allclose(slope[0], times**2)


def test_beyond_a_cosine_it_goes_on_as_a_line():
    value, slope = cosine_of_multiple(tf.constant([1.5, -2.0]), 4)
    np.testing.assert_allclose(slope, [16.0, 16.0])
    np.testing.assert_allclose(value, [1 + 0.5 * 16, -7 - 16])


def test_a_multiple_of_one_is_a_normalized_softmax():
    loss = losses.SphereFace(margin=1, scale=16.0, dtype="float64")
    plain = losses.NormalizedSoftmax(dtype="float64")
    np.testing.assert_allclose(
        loss(LABELS, COSINES), plain(LABELS, 16.0 * COSINES), rtol=1e-9
    )


@pytest.mark.parametrize("margin", [0, -1, 1.5])
def test_margin_is_a_positive_integer(margin):
    with pytest.raises(ValueError, match=f"`margin`.*margin={margin}"):
        losses.SphereFace(margin=margin)
