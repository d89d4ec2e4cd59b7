import numpy as np
import pytest

from keras_dml import losses

# Ranks 1 and 4 of the positives.
SIMILARITY = np.array([[0.9, 0.8, 0.7, 0.6, 0.5]])
POSITIVE = np.array([[True, False, False, True, False]])


@pytest.mark.parametrize(
    "k, wanted",
    [((2,), 1 / 2), ((3,), 1 / 2), ((5,), 1.0), ((2, 5), 3 / 4)],
)
def test_it_is_the_recall_when_cold(k, wanted):
    """Of at most K positives, for a rank that is not K itself."""
    loss = losses.recall_surrogate_loss(
        SIMILARITY, POSITIVE, ~POSITIVE, k, 1e-3, 1e-3
    )
    np.testing.assert_allclose(loss, [1 - wanted], atol=1e-9)


def test_more_positives_than_k_cannot_all_be_found():
    positive = np.array([[True, True, True, True, False]])
    loss = losses.recall_surrogate_loss(
        SIMILARITY, positive, ~positive, (2,), 1e-3, 1e-3
    )
    # Rank 1 is within 2, rank 2 by a half.
    np.testing.assert_allclose(loss, [1 - 1.5 / 2], atol=1e-9)


def test_one_k_is_a_list_of_one():
    assert losses.RecallSurrogate(k=4).k == [4]
    assert losses.RecallSurrogate(k=(1, 4)).get_config()["k"] == [1, 4]
