"""Pairs and triplets that the caller gives."""

import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses, miners
from keras_dml.errors import UsageError

LABELS = np.array([0, 0, 1, 1, 0, 1], "int32")
X = np.random.default_rng(0).standard_normal((6, 4))
UNIT = X / np.linalg.norm(X, axis=1, keepdims=True)


def distance(i, j):
    return np.linalg.norm(UNIT[i] - UNIT[j])


@pytest.mark.parametrize("mining", [None, "all"])
def test_only_the_listed_triplets_count(mining):
    """Row 1 is listed as a positive of row 0 for one of two negatives."""
    triplets = [(0, 1, 2), (0, 4, 3), (5, 2, 1)]
    loss = losses.Triplet(
        margin=1.0,
        mining="all",
        distance="euclidean",
        average=mining or "non_zero",
        miner=miners.Given(triplets),
        dtype="float64",
    )
    terms = [
        max(0.0, distance(a, p) - distance(a, n) + 1.0) for a, p, n in triplets
    ]
    terms = [term for term in terms if term or mining]
    np.testing.assert_allclose(loss(LABELS, X), np.mean(terms))
    # The list decides, not the labels.
    np.testing.assert_allclose(loss(0 * LABELS, X), np.mean(terms))


def test_a_matrix_of_pairs_leaves_the_others_out():
    positives, negatives = [(0, 1), (3, 2)], [(0, 3), (4, 5), (4, 2)]
    matrix = miners.pair_matrix(6, positives, negatives)
    loss = losses.Contrastive(
        form="euclidean", negative_margin=2.0, dtype="float64"
    )
    near = [distance(*pair) for pair in positives]
    far = [2.0 - distance(*pair) for pair in negatives]
    value = loss(matrix, X)
    np.testing.assert_allclose(value, np.mean(near) + np.mean(far))
    compiled = tf.function(loss, jit_compile=True)
    np.testing.assert_allclose(
        compiled(tf.constant(matrix), tf.constant(X)), value
    )


def test_a_whole_matrix_is_the_labels():
    same = (LABELS[:, None] == LABELS).astype("int32")
    loss = losses.Triplet(mining="all")
    assert float(loss(same, X)) == float(loss(LABELS, X))
    assert float(loss(same > 0, X)) == float(loss(LABELS, X))


@pytest.mark.parametrize(
    "triplets, message",
    [
        ([], "at least one triplet"),
        ([(0, 1)], "`triplets`.*3 rows each"),
        ([(0, 1, -1)], "`triplets`.*counted from 0"),
        ([(0, 1, 2.0)], "`triplets`"),
        ("abc", "`triplets`"),
        ([(0, 1, 2), (3, 4)], "`triplets`.*3 rows each"),
    ],
)
def test_refused_triplets(triplets, message):
    with pytest.raises(UsageError, match=message):
        miners.Given(triplets)


def test_without_a_list_each_three_rows_are_a_triplet():
    arguments = {"mining": "all", "margin": 2.0, "average": "all"}
    given = miners.Given([(0, 1, 2), (3, 4, 5)])
    wanted = losses.Triplet(miner=given, **arguments)(LABELS, X)
    turns = losses.Triplet(miner=miners.Given(), **arguments)
    assert float(turns(LABELS, X)) == float(wanted)
    by_name = losses.Triplet(miner="given", **arguments)
    assert float(by_name(LABELS, X)) == float(wanted)
    with pytest.raises(UsageError, match="`triplets` must be given.*5 rows"):
        turns(LABELS[:5], X[:5])


def test_rows_beyond_the_batch_are_refused():
    loss = losses.Triplet(mining="all", miner=miners.Given([(0, 1, 6)]))
    with pytest.raises(UsageError, match="`triplets`.*batch of 6.*=6"):
        loss(LABELS, X)
    with pytest.raises(UsageError, match="`negatives`.*rows below 3"):
        miners.pair_matrix(3, negatives=[(0, 3)])
