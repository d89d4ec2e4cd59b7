import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses
from keras_dml.losses.arcface import cosine_of_larger_angle
from tests.losses.steps import value_and_gradient

RNG = np.random.default_rng(0)
LABELS = np.array([0, 2, 1, 1], "int32")
COSINES = RNG.uniform(-0.9, 0.9, (4, 3))


def found(loss, cosines):
    value, gradient = value_and_gradient(loss, LABELS, cosines)
    return value.numpy(), gradient.numpy()


@pytest.mark.parametrize("margin", [0.0, 0.1, 0.5, 1.0, 3.0])
def test_cosine_of_larger_angle(margin):
    angles = np.linspace(0.01, np.pi - 0.01, 301)
    inside = angles + margin < np.pi
    actual = cosine_of_larger_angle(np.cos(angles), margin)
    np.testing.assert_allclose(
        actual[inside], np.cos(angles + margin)[inside], atol=1e-12
    )
    np.testing.assert_allclose(
        actual[~inside],
        (np.cos(angles) - margin * np.sin(margin))[~inside],
        atol=1e-12,
    )


def test_a_nearer_row_never_loses_more():
    """Also where the larger angle exceeds pi, on both sides of the step."""
    angles = np.linspace(0, np.pi, 400)
    cosines = tf.constant(np.cos(angles))
    with tf.GradientTape() as tape:
        tape.watch(cosines)
        shifted = cosine_of_larger_angle(cosines, 0.5)
    assert np.all(tape.gradient(shifted, cosines) > 0)
    assert np.all(shifted <= cosines)


def test_no_margin_is_a_normalized_softmax():
    arc = losses.ArcFace(margin=0.0, scale=16.0, dtype="float64")
    plain = losses.NormalizedSoftmax(dtype="float64")
    actual = found(arc, COSINES)
    expected = found(lambda y, s: plain(y, 16.0 * s), COSINES)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-9, atol=1e-12)


def test_closed_form_of_rows_on_their_proxies():
    """All other proxies orthogonal."""
    scale, classes = 4.0, 5
    loss = losses.ArcFace(0.5, scale)(np.arange(5), np.eye(5, dtype="float32"))
    expected = np.log1p((classes - 1) * np.exp(-scale * np.cos(0.5)))
    # The sine is bounded away from zero.
    np.testing.assert_allclose(loss, expected, rtol=0.003)


def test_straight_through_has_the_value_and_the_gradient_of_a_softmax():
    exact = losses.ArcFace(0.5, 8.0, dtype="float64", reduction="sum")
    through = losses.ArcFace(
        0.5, 8.0, straight_through=True, dtype="float64", reduction="sum"
    )
    value, gradient = found(through, COSINES)
    expected, other = found(exact, COSINES)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    assert not np.allclose(gradient, other)
    own = np.eye(3, dtype=bool)[LABELS]
    np.testing.assert_allclose(gradient[~own], other[~own], rtol=1e-9)
    logits = COSINES.copy()
    logits[own] = np.cos(np.arccos(COSINES[own]) + 0.5)
    p = np.exp(8.0 * logits)
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(gradient, 8.0 * (p - own), rtol=1e-9)


@pytest.mark.parametrize("straight_through", [True, False])
@pytest.mark.parametrize("cosine", [1.0, 1.0000001, -1.0, -1.0000001])
def test_the_ends_are_finite(cosine, straight_through):
    loss = losses.ArcFace(straight_through=straight_through)
    cosines = np.full((4, 3), cosine, "float32")
    value, gradient = found(loss, cosines)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    # The own proxy still pulls.
    assert np.all(gradient[np.arange(4), LABELS] < 0)


@pytest.mark.parametrize("margin", [28.6, -0.1, np.pi])
def test_margin_is_an_angle_in_radians(margin):
    with pytest.raises(ValueError, match=r"margin=.*radians.*degrees"):
        losses.ArcFace(margin=margin)
