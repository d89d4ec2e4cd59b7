import numpy as np
import pytest

from keras_dml import losses

# A positive between a negative before it and one behind it: one is before.
BETWEEN = np.array([[0.9, 0.5, 0.1]])
POSITIVE = np.array([[False, True, False]])


@pytest.mark.parametrize(
    "penalty, parameter, wanted",
    [
        ("o", None, 1),
        ("iu", None, 2 * np.log(2)),
        ("ib", None, (2 - np.log(3)) / 4),
        ("ib", 4.0, (4 - np.log(5)) / 16),
        ("ds", None, np.log(2)),
        ("dq", None, 1 / 2),
        ("dq", 4.0, 1 - 2**-4.0),
    ],
)
def test_one_negative_before_a_positive(penalty, parameter, wanted):
    loss = losses.pnp_loss(BETWEEN, POSITIVE, ~POSITIVE, penalty, parameter)
    np.testing.assert_allclose(loss, [wanted], rtol=1e-9)


@pytest.mark.parametrize("penalty", ["o", "iu", "ib", "ds", "dq"])
def test_positives_before_each_other_cost_nothing(penalty):
    similarity = np.array([[0.9, 0.8, 0.1]])
    positive = np.array([[True, True, False]])
    loss = losses.pnp_loss(similarity, positive, ~positive, penalty)
    np.testing.assert_allclose(loss, [0.0], atol=1e-12)
