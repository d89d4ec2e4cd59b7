import math

import numpy as np
import pytest

from keras_dml import losses
from tests.losses.naive_pair_losses import unit

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("angle", [0.4, math.pi / 4, 1.1])
def test_the_exponent_tells_on_which_side_of_the_angle_the_negative_is(angle):
    """Seen from the negative, half of the pair stands under an angle."""
    constant = 6 * math.tan(angle) ** 2 - 2
    kept = []
    for _ in range(50):
        a, p, n = x = unit(RNG.standard_normal((3, 3)))
        cosines = x @ x.T
        loss = losses.angular_loss(
            cosines[:1],
            cosines,
            np.array([[False, True, False]]),
            np.array([[False, False, True]]),
            angle,
        )
        exponent = math.log(math.expm1(float(loss[0])))
        half = np.linalg.norm(a - p) / 2
        seen = math.atan(half / np.linalg.norm(n - (a + p) / 2))
        kept.append(seen < angle)
        assert (exponent < constant) == kept[-1]
    assert 0 < sum(kept) < 50


def test_a_wider_angle_allows_more():
    labels = np.array([0, 0, 1, 1], "int32")
    x = np.array([[1.0, 0.0], [0.9, 0.3], [-1.0, 0.0], [-0.9, 0.3]])
    values = [
        float(losses.Angular(angle, dtype="float64")(labels, x))
        for angle in (0.4, 0.8, 1.2)
    ]
    assert values == sorted(values, reverse=True)
