import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses
from tests.losses.steps import assert_finite, value_and_gradient

LABELS = np.array([0, 2, 2, 1], "int32")
COSINES = np.random.default_rng(0).uniform(-1, 1, (4, 5)).astype("float32")


def test_embeddings_that_are_not_centered_do_not_overflow():
    """Rows and proxies of positive entries, as pooled features have."""
    rng = np.random.default_rng(1)
    rows, proxies = rng.uniform(size=(180, 512)), rng.uniform(size=(20, 512))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    proxies /= np.linalg.norm(proxies, axis=1, keepdims=True)
    similarities = tf.constant((rows @ proxies.T).astype("float32"))
    products = tf.matmul(similarities, similarities, transpose_a=True)
    assert np.min(32 * products) > np.log(np.finfo("float32").max)
    labels = rng.integers(0, 20, 180)
    value, gradient = value_and_gradient(
        losses.OurLoss2(), labels, similarities
    )
    assert_finite(value, gradient)
    largest = np.max(products - 1e9 * np.eye(20), axis=1)
    np.testing.assert_allclose(value, 32 * (largest.mean() + 0.1), rtol=0.01)


def test_the_mean_does_not_depend_on_repeated_rows():
    loss = losses.OurLoss2(reduction_over_batch="mean", dtype="float64")
    first = losses.OurLoss1(dtype="float64")
    once = loss(LABELS, COSINES) - first(LABELS, COSINES)
    labels, cosines = np.tile(LABELS, 3), np.tile(COSINES, (3, 1))
    thrice = loss(labels, cosines) - first(labels, cosines)
    np.testing.assert_allclose(thrice, once, rtol=1e-6)


def test_of_one_class():
    """Proxies have nothing to be pushed from."""
    labels = np.zeros(4, "int32")
    np.testing.assert_allclose(
        losses.OurLoss2()(labels, COSINES[:, :1]),
        losses.OurLoss1()(labels, COSINES[:, :1]),
        rtol=1e-6,
    )


def test_reduction_over_batch_is_checked():
    with pytest.raises(ValueError, match="'sum', 'mean'.*batch='max'"):
        losses.OurLoss2(reduction_over_batch="max")
