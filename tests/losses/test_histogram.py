import numpy as np
import pytest

from keras_dml import losses

# Two rows on each of two opposite points.
X = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])


@pytest.mark.parametrize(
    "labels, wanted", [([0, 0, 1, 1], 0), ([0, 1, 0, 1], 1)]
)
def test_separated_pairs_are_zero_and_inverted_ones_one(labels, wanted):
    loss = losses.Histogram(dtype="float64")(np.array(labels), X)
    np.testing.assert_allclose(loss, wanted, atol=1e-12)


def test_it_counts_the_inverted_pairs_where_cosines_lie_on_points():
    rng = np.random.default_rng(0)
    similarity = rng.integers(-10, 11, (6, 9)) / 10
    positive = rng.random((6, 9)) < 0.3
    loss = losses.histogram_loss(similarity, positive, ~positive, bins=20)
    inverted = similarity[~positive][:, None] >= similarity[positive]
    # An equal negative counts as inverted.
    np.testing.assert_allclose(loss, np.full(6, inverted.mean()), rtol=1e-9)


@pytest.mark.parametrize("bins", [1, 2, 100])
def test_cosines_that_rounding_moved_beyond_the_ends_keep_their_place(bins):
    similarity = np.array([[1.0000001, -1.0000001]], "float32")
    first = np.array([[True, False]])
    for positive, wanted in ((first, 0.0), (~first, 1.0)):
        loss = losses.histogram_loss(similarity, positive, ~positive, bins)
        np.testing.assert_allclose(loss, [wanted], atol=1e-4)
