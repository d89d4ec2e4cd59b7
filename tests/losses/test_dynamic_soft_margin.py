import numpy as np

from keras_dml import losses
from tests.conformance import numerical_gradient
from tests.losses import naive_pair_losses as naive
from tests.losses.cases import LABELS
from tests.losses.steps import value_and_gradient

X = np.random.default_rng(0).standard_normal((8, 5))
BINS = 8


def triplets():
    positive, negative = naive.masks(LABELS)
    a, p, n = np.nonzero(positive[:, :, None] & negative[:, None, :])
    return a, p, n


def excess(x):
    a, p, n = triplets()
    x = naive.unit(x)
    near, far = (np.linalg.norm(x[a] - x[one], axis=1) for one in (p, n))
    return near - far


def weights(x):
    """The weights by their definition, of one place after the other."""
    places = (excess(x) + 2) * BINS / 4
    points = np.arange(BINS + 1)
    shares = np.maximum(0, 1 - abs(places[:, None] - points))
    easier = np.cumsum(shares.mean(axis=0))
    return easier[places.astype(int)]


def test_the_gradient_is_that_of_constant_weights():
    loss = losses.DynamicSoftMargin(bins=BINS, dtype="float64")
    value, gradient = value_and_gradient(loss, LABELS, X)
    fixed = weights(X)
    np.testing.assert_allclose(value, np.mean(fixed * excess(X)))
    wanted = numerical_gradient(
        lambda x: np.mean(fixed * excess(x)), X.copy(), 1e-6
    )
    np.testing.assert_allclose(gradient, wanted, atol=1e-7)


def test_harder_triplets_weigh_more_and_none_more_than_one():
    order = np.argsort(excess(X))
    rising = weights(X)[order]
    assert np.all(np.diff(rising) >= 0)
    assert 0 < rising[0] < rising[-1] <= 1
