import numpy as np
import pytest
import tensorflow as tf

from keras_dml import losses, miners
from tests.losses import naive_pair_losses as naive

X = np.random.default_rng(0).standard_normal((9, 4))
LABELS = np.array([0, 1, 2, 0, 1, 2, 3, 3, 0], "int32")
TREE = [[0, 0, 1, 2], [0, 0, 0, 1]]


def test_without_groups_it_is_the_triplet_loss():
    loss = losses.HierarchicalTriplet(mining="all", dtype="float64")
    wanted = losses.Triplet(mining="all", dtype="float64")(LABELS, X)
    np.testing.assert_array_equal(loss(LABELS, X), wanted)
    one_group = losses.HierarchicalTriplet(
        [0, 0, 0, 0], mining="all", dtype="float64"
    )
    np.testing.assert_array_equal(one_group(LABELS, X), wanted)


@pytest.mark.parametrize("mining", ["semi_hard", "all"])
def test_two_levels_against_loops(mining):
    arguments = {"groups": TREE, "margin": 0.3, "level_margin": 0.2}
    loss = losses.HierarchicalTriplet(
        **arguments, mining=mining, dtype="float64"
    )
    wanted = naive.hierarchical_triplet(LABELS, X, **arguments, mining=mining)
    np.testing.assert_allclose(loss(LABELS, X), wanted, rtol=1e-9)


def test_the_margin_counts_the_levels_at_which_classes_part():
    """Anchor and positive at 0.5; negatives at 0.75 of 0, 1 and 2 levels."""
    distance = np.array([[0.0, 0.5, 0.75, 0.75, 0.75]])
    positive = np.array([[False, True, False, False, False]])
    negative = np.array([[False, False, True, True, True]])
    for kept, wanted in ((2, 0.0), (3, 0.1), (4, 0.3)):
        value = losses.hierarchical_triplet_loss(
            distance,
            positive,
            negative & (np.arange(5) == kept),
            np.array([[0, 0, 0, 1, 2]]),
            margin=0.15,
            level_margin=0.2,
            mining="all",
        )
        np.testing.assert_allclose(value, [wanted], atol=1e-12)


def test_names_of_groups_do_not_matter():
    first, second = (
        losses.HierarchicalTriplet(groups, dtype="float64")
        for groups in ([0, 1, 0, 1], [9, 4, 9, 4])
    )
    np.testing.assert_array_equal(first(LABELS, X), second(LABELS, X))


def test_labels_without_a_group_are_named():
    loss = losses.HierarchicalTriplet([0, 1, 1])
    with pytest.raises(ValueError, match="between 0 and 2.*label 3 in row 6"):
        loss(LABELS, X)


@pytest.mark.parametrize("label", [-1, 3, 7])
def test_labels_without_a_group_are_nan_where_nothing_raises(label):
    loss = losses.HierarchicalTriplet([0, 0, 1])
    step = tf.function(loss, jit_compile=True)
    labels = np.where(LABELS == 3, label, LABELS)
    assert np.isnan(step(tf.constant(labels), X))
    assert np.isfinite(step(tf.constant(LABELS % 3), X))


def test_a_matrix_of_pairs_has_no_groups():
    loss = losses.HierarchicalTriplet([0, 0, 1, 1])
    same = LABELS[:, None] == LABELS
    with pytest.raises(ValueError, match="nothing of groups"):
        loss(same, X)


@pytest.mark.parametrize("groups", [[], [0.5, 1.0], [[0, 1], [0]], "ab", 3.0])
def test_refused_groups(groups):
    with pytest.raises(ValueError, match="`groups` must be the group of each"):
        losses.HierarchicalTriplet(groups)


MINER = miners.TripletMargin(margin=0.3, kind="hard")


def test_a_miner_of_triplets_chooses_them_as_for_triplet():
    arguments = {"mining": "all", "miner": MINER, "dtype": "float64"}
    loss = losses.HierarchicalTriplet(**arguments)
    wanted = losses.Triplet(**arguments)(LABELS, X)
    np.testing.assert_array_equal(loss(LABELS, X), wanted)
    assert loss(LABELS, X) != losses.HierarchicalTriplet(
        mining="all", dtype="float64"
    )(LABELS, X)


def test_a_miner_of_triplets_needs_all_triplets():
    with pytest.raises(ValueError, match="`miner` of triplets needs.*'hard'"):
        losses.HierarchicalTriplet(mining="hard", miner=MINER)
