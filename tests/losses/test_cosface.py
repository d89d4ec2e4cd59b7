import numpy as np
import pytest

from keras_dml import losses

LABELS = np.array([0, 2, 1, 1], "int32")
COSINES = np.random.default_rng(0).uniform(-1, 1, (4, 3)).astype("float32")


def test_no_margin_is_a_normalized_softmax():
    np.testing.assert_allclose(
        losses.CosFace(margin=0.0, scale=16.0)(LABELS, COSINES),
        losses.NormalizedSoftmax()(LABELS, 16.0 * COSINES),
        rtol=1e-6,
    )


@pytest.mark.parametrize("margin", [0.0, 0.35])
def test_closed_form_of_rows_on_their_proxies(margin):
    """All other proxies orthogonal."""
    loss = losses.CosFace(margin, 8.0, dtype="float64")
    value = loss(np.arange(5), np.eye(5))
    expected = np.log1p(4 * np.exp(-8.0 * (1 - margin)))
    np.testing.assert_allclose(value, expected, rtol=1e-9)


def test_a_margin_raises_the_loss():
    values = [losses.CosFace(m)(LABELS, COSINES) for m in (0.0, 0.2, 0.4)]
    assert values[0] < values[1] < values[2]
