import math

import numpy as np
import pytest

from keras_dml import losses

LOGITS = np.random.default_rng(0).standard_normal((6, 4)).astype("float32")
LABELS = np.array([0, 3, 1, 1, 2, 0], "int32")


def test_is_the_weighted_sum_of_its_terms():
    both = losses.WeightedSum([losses.Softmax(), losses.ProxyNCA()], [2.0, 0.5])
    expected = 2.0 * losses.Softmax()(LABELS, LOGITS)
    expected += 0.5 * losses.ProxyNCA()(LABELS, LOGITS)
    np.testing.assert_allclose(both(LABELS, LOGITS), expected, rtol=1e-6)


def test_gives_one_number_per_row():
    loss = losses.WeightedSum([losses.Softmax()])
    assert loss.call(LABELS, LOGITS).shape == (6,)


@pytest.mark.parametrize(
    "terms, weights", [([], None), ([losses.Softmax()], [1.0, 2.0])]
)
def test_needs_one_weight_for_each_loss(terms, weights):
    with pytest.raises(ValueError, match=f"Received: {len(terms)} losses"):
        losses.WeightedSum(terms, weights)


def test_terms_may_take_a_matrix_of_pairs():
    pairs = np.equal([[0], [0], [1]], [[0, 0, 1]])
    rows = np.eye(3, 2, dtype="float32")
    term = losses.MultiSimilarity()
    total = losses.WeightedSum([term, term], [1.0, 2.0])(pairs, rows)
    np.testing.assert_allclose(total, 3.0 * term(pairs, rows))


@pytest.mark.parametrize("weight", ["a", math.nan])
def test_weights_are_numbers(weight):
    with pytest.raises(ValueError, match="`weights` must be"):
        losses.WeightedSum([losses.MultiSimilarity()], [weight])
