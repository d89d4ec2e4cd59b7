import keras
import numpy as np
import pytest

from keras_dml.ops.distances import is_distance, lp_distances, metric_name
from tests.conformance import numerical_gradient
from tests.losses.steps import value_and_gradient

RNG = np.random.default_rng(0)
# Features in one block, in blocks of two, and in blocks of four.
SIZES = pytest.mark.parametrize("dim", [3, 6, 8])
ORDERS = pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, 4.5, 300.0])


@SIZES
@ORDERS
def test_distances_are_norms_of_differences(dim, p):
    x, y = RNG.standard_normal((4, dim)), RNG.standard_normal((5, dim))
    wanted = [[np.linalg.norm(a - b, p) for b in y] for a in x]
    found = keras.ops.convert_to_numpy(lp_distances(x, y, p))
    if p > 100:
        # Numpy's own powers vanish.
        wanted = [[np.linalg.norm(a - b, np.inf) for b in y] for a in x]
    np.testing.assert_allclose(found, wanted, rtol=1e-2 if p > 100 else 1e-9)


@SIZES
@ORDERS
def test_gradients_by_both_sides_are_differences(dim, p):
    x, y = RNG.standard_normal((4, dim)), RNG.standard_normal((5, dim))
    weights = RNG.standard_normal((4, 5))

    def total(x, y):
        return keras.ops.sum(weights * lp_distances(x, y, p))

    _, by_x = value_and_gradient(lambda y, x: total(x, y), y, x)
    _, by_y = value_and_gradient(total, x, y)
    numerical = (
        numerical_gradient(lambda x: float(total(x, y)), x, 1e-6),
        numerical_gradient(lambda y: float(total(x, y)), y, 1e-6),
    )
    for found, wanted in zip((by_x, by_y), numerical, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)


@ORDERS
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e30])
def test_equal_rows_and_rows_of_any_length_have_finite_gradients(p, size):
    x = (size * np.array([[1, 2], [1, 2], [-1, 0.5]])).astype("float32")
    value, gradient = value_and_gradient(
        lambda _, x: keras.ops.sum(lp_distances(x, x, p)), None, x
    )
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    assert float(lp_distances(x[:1], x[1:2], p)[0, 0]) == 0.0


@pytest.mark.parametrize("name", ["l", "l0", "l0.9", "L1", "linf", "l1e3", 1])
def test_names_of_no_metric_are_refused(name):
    with pytest.raises(ValueError, match="`similarity` must be one of"):
        metric_name("similarity", name)


def test_products_alone_are_no_distances():
    names = ("cosine", "dot", "euclidean", "l1", "signal_to_noise")
    assert [is_distance(one) for one in names] == [False] * 2 + [True] * 3
