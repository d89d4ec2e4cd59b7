import numpy as np

from keras_dml import losses


def test_equal_pairs_of_a_kind_are_zero_however_near_they_are():
    similarity = np.array([[0.2, 0.2, 0.7, 0.7]])
    first = np.array([[True, True, False, False]])
    for positive in (first, ~first):
        loss = losses.intra_pair_variance_loss(similarity, positive, ~positive)
        np.testing.assert_array_equal(loss, [0.0])


def test_only_the_wrong_side_of_the_mean_counts_and_not_within_a_tolerance():
    """Means of 0.5; of each kind one pair lies 0.1 off on either side."""
    similarity = np.array([[0.4, 0.6, 0.4, 0.6]])
    positive = np.array([[True, True, False, False]])
    for tolerance, term in ((0.0, 0.1), (0.1, 0.05), (0.2, 0.0)):
        for tolerances in ((tolerance, 1.0), (1.0, tolerance)):
            loss = losses.intra_pair_variance_loss(
                similarity, positive, ~positive, *tolerances
            )
            # Half of the pairs of one kind; the other tolerates everything.
            np.testing.assert_allclose(loss, [term**2 / 2], atol=1e-12)
