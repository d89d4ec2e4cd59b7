import numpy as np
import pytest

from keras_dml import losses
from tests.conformance import numerical_gradient
from tests.losses.steps import value_and_gradient

X = np.random.default_rng(0).standard_normal((8, 4))
# Two rows have no partner.
LABELS = np.array([0, 1, 1, 0, 2, 0, 1, 3], "int32")


def test_equidistant_rows():
    """Unit vectors at right angles: the share of the own class in the rest."""
    labels = np.array([0, 0, 0, 1, 1, 2], "int32")
    expected = (3 * np.log(5 / 2) + 2 * np.log(5 / 1)) / 5
    np.testing.assert_allclose(
        losses.NCA(dtype="float64")(labels, 3 * np.eye(6)), expected
    )


def test_one_positive_each_is_sup_con_of_half_the_temperature():
    labels = np.arange(8) // 2
    (value, gradient), (expected, wanted) = (
        value_and_gradient(loss, labels, X)
        for loss in (
            losses.NCA(0.4, dtype="float64"),
            losses.SupCon(0.2, dtype="float64"),
        )
    )
    np.testing.assert_allclose(value, expected, rtol=1e-9)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-6, atol=1e-9)


def test_temperature_is_a_squared_length():
    loss = losses.NCA(4.0, normalize=False, dtype="float64")
    np.testing.assert_allclose(
        loss(LABELS, 2.0 * X),
        losses.NCA(1.0, normalize=False, dtype="float64")(LABELS, X),
        rtol=1e-12,
    )


def test_rows_without_a_positive_do_not_count():
    """They are negatives of others, and in no other way in the loss."""
    loss = losses.NCA(dtype="float64", reduction="none")
    values = loss(LABELS, X)
    assert len(set(values.numpy().tolist())) == 1
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    squared = np.sum((unit[:, None] - unit[None]) ** 2, axis=2)
    share = np.exp(-squared) * (1 - np.eye(8))
    own = share * (LABELS[:, None] == LABELS[None])
    chosen = own.any(axis=1)
    assert chosen.sum() == 6
    share = own.sum(axis=1)[chosen] / share.sum(axis=1)[chosen]
    np.testing.assert_allclose(values[0], -np.log(share).mean(), rtol=1e-12)


def test_gradient_is_that_of_the_paper():
    """Equation 7, with embeddings for the projected inputs."""
    loss = losses.NCA(normalize=False, dtype="float64")
    _, gradient = value_and_gradient(loss, LABELS, X)
    squared = np.sum((X[:, None] - X[None]) ** 2, axis=2)
    p = np.exp(-squared) * (1 - np.eye(8))
    p /= p.sum(axis=1, keepdims=True)
    own = p * (LABELS[:, None] == LABELS[None])
    expected = np.zeros_like(X)
    rows = [i for i in range(8) if own[i].sum() > 0]
    for i in rows:
        # d/dx of sum_k p_ik d_ik - sum_{j in P} p_ij d_ij / sum_P p_ij.
        force = own[i] / own[i].sum() - p[i]
        for j in range(8):
            pull = 2 * force[j] * (X[i] - X[j]) / len(rows)
            expected[i] += pull
            expected[j] -= pull
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)
    differences = numerical_gradient(lambda x: float(loss(LABELS, x)), X, 1e-6)
    np.testing.assert_allclose(gradient, differences, atol=1e-6)


def test_a_hopeless_row_still_has_a_gradient():
    """The probability of its class is zero in float32, its logarithm not."""
    x = np.array([[0.0], [30.0], [1.0], [31.0]], "float32")
    loss = losses.NCA(normalize=False)
    value, gradient = value_and_gradient(loss, np.array([0, 0, 1, 1]), x)
    np.testing.assert_allclose(value, 900 - 1, rtol=1e-6)
    assert np.abs(gradient).min() > 1


@pytest.mark.parametrize("labels", [np.arange(8), np.zeros(8, "int32")])
def test_without_positives_or_negatives_it_is_zero(labels):
    value, gradient = value_and_gradient(losses.NCA(), labels, X)
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros_like(X))
