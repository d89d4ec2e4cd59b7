import math

import numpy as np
import pytest
from scipy import stats

from keras_dml.comparison.ranks import (
    critical_difference,
    rank_arms,
    rank_records,
)
from tests.comparison.deck_tournament import ARMS, RECALL_AT_1, TOTALS
from tests.comparison.made_up import record, unfinished


def naive_ranks(scores):
    """1 + how many are better, and half of those that are equal."""
    ranks = np.empty_like(scores)
    for block, row in enumerate(scores):
        for arm, score in enumerate(row):
            equal = sum(other == score for other in row) - 1
            ranks[block, arm] = 1 + sum(other > score for other in row)
            ranks[block, arm] += equal / 2
    return ranks


def scores_with_ties(blocks=7, arms=5):
    return np.random.default_rng(3).integers(0, 5, (blocks, arms)) / 10


def test_ranks_against_loops():
    scores = scores_with_ties()
    ranks = naive_ranks(scores)
    found = rank_arms(scores, "abcde")
    columns = ["abcde".index(arm) for arm in found.arms]
    np.testing.assert_allclose(found.total, ranks.sum(axis=0)[columns])
    np.testing.assert_allclose(found.mean, ranks.mean(axis=0)[columns])
    np.testing.assert_allclose(found.std, ranks.std(axis=0, ddof=1)[columns])
    assert (np.diff(found.mean) >= 0).all()
    assert found.total.sum() == 7 * 15


@pytest.mark.parametrize("ties", [False, True])
def test_friedman_is_scipys(ties):
    scores = np.random.default_rng(1).random((6, 4))
    if ties:
        scores = scores_with_ties()
    found = rank_arms(scores)
    expected = stats.friedmanchisquare(*scores.T)
    assert found.friedman_p == pytest.approx(expected.pvalue)


def test_the_decks_tournament():
    found = rank_arms(RECALL_AT_1, ARMS)
    assert list(found.arms) == list(TOTALS)
    assert found.total.tolist() == [total for total, _ in TOTALS.values()]
    np.testing.assert_allclose(found.mean, found.total / 12)
    # The deck's deviations are sample ones, one of them rounded up.
    np.testing.assert_allclose(
        found.std, [std for _, std in TOTALS.values()], atol=0.01
    )
    assert found.num_blocks == 12


@pytest.mark.parametrize(
    "num_arms, quantile",
    [
        (2, 1.960),
        (3, 2.343),
        (4, 2.569),
        (5, 2.728),
        (6, 2.850),
        (7, 2.949),
        (8, 3.031),
        (9, 3.102),
        (10, 3.164),
    ],
)
def test_nemenyis_quantiles_are_demsars(num_arms, quantile):
    # Table 5(a); the last printed digit is off by one for 3 and 7 arms.
    found = critical_difference(num_arms, 10)
    spread = math.sqrt(num_arms * (num_arms + 1) / 60)
    assert found / spread == pytest.approx(quantile, abs=1.1e-3)


def test_demsars_example():
    # Section 3.2.2: four classifiers on fourteen data sets.
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)


def naive_groups(mean, difference):
    """Longest runs of arms within a critical difference."""
    count = len(mean)
    runs = [
        (first, last)
        for first in range(count)
        for last in range(first + 1, count)
        if mean[last] - mean[first] < difference
    ]
    return [
        run
        for run in runs
        if not any(
            other != run and other[0] <= run[0] and run[1] <= other[1]
            for other in runs
        )
    ]


@pytest.mark.parametrize("seed", range(5))
def test_groups_against_loops(seed):
    generator = np.random.default_rng(seed)
    scores = np.linspace(0, 3, 9) + generator.normal(size=(20, 9))
    found = rank_arms(scores)
    assert found.friedman_p < 0.05
    expected = naive_groups(found.mean, found.critical_difference)
    assert len(expected) > 1
    assert found.groups == expected


def test_arms_are_one_group_where_friedman_sees_no_difference():
    found = rank_arms(np.random.default_rng(0).random((4, 6)))
    assert found.friedman_p > 0.05
    assert found.groups == [(0, 5)]


def test_equal_arms_share_their_ranks():
    found = rank_arms(np.ones((3, 4)))
    assert found.mean.tolist() == [2.5] * 4
    assert found.friedman_p == 1
    assert found.groups == [(0, 3)]


def test_one_block_has_no_tests():
    found = rank_arms([[0.1, 0.3, 0.2]])
    assert found.arms == ("1", "2", "0")
    assert np.isnan(found.std).all()
    assert math.isnan(found.friedman_p)
    assert found.groups == []


@pytest.mark.parametrize(
    "scores", [[0.1, 0.2], [[0.1, math.nan]], np.zeros((0, 3))]
)
def test_scores_that_have_no_ranks_are_refused(scores):
    with pytest.raises(ValueError, match="`scores` must"):
        rank_arms(scores)


def test_names_must_fit():
    with pytest.raises(ValueError, match="one name for each of the 2 columns"):
        rank_arms([[0.1, 0.2]], ["a", "b", "c"])


def test_experiments_rank_the_means_of_their_seeds():
    records = [
        record(arm, seed, value, dim=dim)
        for dim in (64, 128)
        for seed in range(2)
        for arm, value in (("a", 0.5 + 0.1 * seed), ("b", 0.51))
    ]
    found = rank_records(records, "map@r")
    assert (found.unit, found.num_blocks) == ("experiments", 2)
    assert found.arms == ("a", "b")
    assert found.total.tolist() == [2, 4]
    assert found.blocks_left_out == 0


def test_experiments_that_an_arm_missed_are_left_out():
    records = [
        record(arm, 0, value, dim=dim)
        for dim in (64, 128, 256)
        for arm, value in (("a", 0.5), ("b", 0.6))
        if (arm, dim) != ("b", 128)
    ]
    records += [unfinished("b", 0, "failed", dim=128)]
    records += [unfinished("c", 0, "failed", dim=dim) for dim in (64, 128)]
    found = rank_records(records, "map@r")
    assert (found.num_blocks, found.blocks_left_out) == (2, 1)
    assert found.arms == ("b", "a")
    assert found.arms_left_out == ("c",)


def test_an_arm_of_another_size_does_not_keep_the_others_from_a_ranking():
    """Nothing was ranked, as no two arms had finished the same experiment."""
    records = [
        record(arm, seed, value, dim=dim)
        for seed in range(3)
        for arm, value, dim in (("a", 0.5, 64), ("b", 0.6, 64), ("c", 0.9, 512))
    ]
    found = rank_records(records, "map@r")
    assert (found.unit, found.num_blocks) == ("seeds", 3)
    assert found.arms == ("b", "a")
    assert found.arms_left_out == ("c",)
    assert found.blocks_left_out == 0
    more = [record(arm, 0, 0.7, dim=128) for arm in "ab"]
    found = rank_records(records + more, "map@r")
    assert (found.unit, found.num_blocks) == ("experiments", 2)
    assert (found.blocks_left_out, found.arms_left_out) == (1, ("c",))


def test_seeds_are_ranked_in_a_single_experiment():
    records = [
        record(arm, seed, value + seed, fold=fold)
        for seed in range(3)
        for fold in range(2)
        for arm, value in (("a", 0.5), ("b", 0.6))
        if (arm, seed) != ("a", 2)
    ]
    found = rank_records(records, "map@r")
    assert (found.unit, found.num_blocks) == ("seeds", 2)
    assert found.blocks_left_out == 1
    assert found.total.tolist() == [2, 4]


def test_folds_are_ranked_where_there_is_one_seed():
    records = [
        record(arm, 0, value, fold=fold)
        for fold in range(4)
        for arm, value in (("a", 0.5), ("b", 0.6))
    ]
    together = [
        record(arm, 0, value, dim=256, concatenated=4)
        for arm, value in (("a", 0.9), ("b", 0.8))
    ]
    found = rank_records(records + together, "map@r")
    assert (found.unit, found.num_blocks) == ("folds", 4)
    assert found.arms == ("b", "a")


def test_nothing_in_common_is_not_ranked():
    assert rank_records([], "map@r") is None
    assert rank_records([record("a")], "map@r") is None
    apart = [record("a", dim=64), record("b", dim=128)]
    assert rank_records(apart, "map@r") is None
    apart = [record("a", seed=0), record("b", seed=1)]
    assert rank_records(apart, "map@r") is None
