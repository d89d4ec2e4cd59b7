import keras
import numpy as np

from keras_dml import losses
from keras_dml.ops.distances import noise_ratios

X = np.random.default_rng(0).standard_normal((5, 7))


def ratios(x, y):
    return keras.ops.convert_to_numpy(noise_ratios(x, y))


def test_ratios_are_those_of_variances():
    found = ratios(X, X)
    for i, row in enumerate(X):
        wanted = np.var(row - X, axis=1) / np.var(row)
        np.testing.assert_allclose(found[i], wanted, rtol=1e-9)
    assert not np.allclose(found, found.T)


def test_neither_size_nor_mean_matters_to_ratios():
    np.testing.assert_allclose(
        ratios(3.0 * X + 1.0, 3.0 * X - 2.0), ratios(X, X), atol=1e-9
    )


def test_equal_rows_are_no_noise_in_single_precision_either():
    x = X.astype("float32")
    np.testing.assert_array_equal(np.diag(ratios(x, x)), np.zeros(5))


def test_the_last_term_is_that_of_sums_of_rows():
    labels = np.array([0, 0, 1, 1, 1], "int32")
    arguments = {"normalize": False, "dtype": "float64"}
    with_term = losses.SignalToNoise(zero_mean=0.3, **arguments)(labels, X)
    without = losses.SignalToNoise(**arguments)(labels, X)
    np.testing.assert_allclose(
        with_term - without, 0.3 * abs(X.sum(axis=1)).mean(), rtol=1e-9
    )
