"""A loss on each prefix of an embedding."""

import numpy as np
import pytest

from keras_dml import losses
from tests.losses.cases import LABELS, cosines_of_centers, embeddings

X = embeddings(LABELS).astype("float32")
SIDE_BY_SIDE = np.concatenate([X[:, :2], X[:, :3], X], axis=1)


def test_one_width_is_the_loss_itself():
    whole = losses.Matryoshka(losses.Contrastive(), [5])
    expected = losses.Contrastive()(LABELS, X)
    np.testing.assert_allclose(whole(LABELS, X), expected, rtol=1e-6)


def test_is_the_weighted_sum_over_the_prefixes():
    loss = losses.Matryoshka(losses.Triplet(), [2, 3, 5], [1.0, 2.0, 0.5])
    expected = sum(
        weight * losses.Triplet()(LABELS, X[:, :size])
        for size, weight in ((2, 1.0), (3, 2.0), (5, 0.5))
    )
    np.testing.assert_allclose(loss(LABELS, SIDE_BY_SIDE), expected, rtol=1e-6)


def test_what_lies_beyond_a_prefix_does_not_matter_to_it():
    loss = losses.Matryoshka(losses.Contrastive(), [2, 3], [1.0, 0.0])
    other = SIDE_BY_SIDE[:, :5].copy()
    other[:, 2:] = 7.0
    np.testing.assert_allclose(
        loss(LABELS, other), losses.Contrastive()(LABELS, X[:, :2]), rtol=1e-6
    )


def test_several_centers_of_a_class():
    y_pred = cosines_of_centers(LABELS).astype("float32")
    loss = losses.Matryoshka(losses.SoftTriple(), [4, 4])
    twice = np.concatenate([y_pred, y_pred], axis=1)
    expected = 2 * losses.SoftTriple()(LABELS, y_pred)
    np.testing.assert_allclose(loss(LABELS, twice), expected, rtol=1e-6)


def test_a_matrix_of_pairs_may_stand_for_the_labels():
    loss = losses.Matryoshka(losses.Contrastive(), [2, 3, 5])
    same = LABELS[:, None] == LABELS[None, :]
    np.testing.assert_array_equal(
        loss(same, SIDE_BY_SIDE), loss(LABELS, SIDE_BY_SIDE)
    )


@pytest.mark.parametrize(
    ("widths", "weights", "message"),
    [
        ([], None, "`widths` must hold at least one"),
        ([2, 3], [1.0], "and `weights` as many.*Received"),
        ([0], None, "`widths`.*Received: widths=0"),
        ([2], [float("nan")], "`weights`.*nan"),
    ],
)
def test_widths_and_weights_are_checked(widths, weights, message):
    with pytest.raises(ValueError, match=message):
        losses.Matryoshka(losses.Softmax(), widths, weights)


def test_predictions_of_another_width_are_refused():
    loss = losses.Matryoshka(losses.Contrastive(), [2, 3])
    with pytest.raises(ValueError, match=r"5 entries.*shape=\(8, 10\)"):
        loss(LABELS, SIDE_BY_SIDE)
