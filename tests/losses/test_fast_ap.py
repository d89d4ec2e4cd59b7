import numpy as np
import pytest

from keras_dml import losses

# Two rows on each of two opposite points.
X = np.array([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])


@pytest.mark.parametrize(
    "labels, wanted",
    [
        ([0, 0, 1, 1], 0.0),
        # The positive of each row comes with a negative, behind another one.
        ([0, 1, 0, 1], 1 - 1 / 3),
    ],
)
def test_closed_forms(labels, wanted):
    loss = losses.FastAP(dtype="float64")(np.array(labels), X)
    np.testing.assert_allclose(loss, wanted, atol=1e-12)


def test_it_is_the_average_precision_where_no_two_rows_share_a_bin():
    rng = np.random.default_rng(0)
    for _ in range(20):
        distance = rng.permutation(np.arange(1, 40))[:12] / 10
        positive = rng.permutation(np.arange(12) < 4)
        found = positive[np.argsort(distance)]
        precisions = np.cumsum(found) / np.arange(1, 13)
        loss = losses.fast_ap_loss(
            distance[None], positive[None], ~positive[None], bins=40
        )
        np.testing.assert_allclose(
            loss, [1 - precisions[found].mean()], rtol=1e-9
        )
