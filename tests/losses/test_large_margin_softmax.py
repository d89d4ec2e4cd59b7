import numpy as np
import pytest

from keras_dml import losses
from tests.losses.cases import LABELS, products_and_lengths

Y_PRED = products_and_lengths(LABELS)


def test_a_multiple_of_one_is_a_softmax_of_the_products():
    loss = losses.LargeMarginSoftmax(margin=1, scale=2.0, dtype="float64")
    plain = losses.Softmax(dtype="float64")
    np.testing.assert_allclose(
        loss(LABELS, Y_PRED), plain(LABELS, 2.0 * Y_PRED[..., 0]), rtol=1e-9
    )


def test_vectors_of_length_one_make_it_sphereface():
    cosines = Y_PRED[..., 0] / Y_PRED[..., 1]
    unit = np.stack([cosines, np.ones_like(cosines)], axis=2)
    loss = losses.LargeMarginSoftmax(margin=3, scale=8.0, dtype="float64")
    sphere = losses.SphereFace(margin=3, scale=8.0, dtype="float64")
    np.testing.assert_allclose(
        loss(LABELS, unit), sphere(LABELS, cosines), rtol=1e-9
    )


@pytest.mark.parametrize("y_pred", [Y_PRED[..., 0], np.ones((8, 4, 3))])
def test_products_without_lengths_are_refused(y_pred):
    message = r"'large_margin_softmax'.*\(batch, classes, 2\).*Received"
    with pytest.raises(ValueError, match=message):
        losses.LargeMarginSoftmax()(LABELS, y_pred)


@pytest.mark.parametrize("margin", [0, 1.5, 101])
def test_margin_is_a_positive_integer(margin):
    with pytest.raises(ValueError, match=f"`margin`.*margin={margin}"):
        losses.LargeMarginSoftmax(margin=margin)
