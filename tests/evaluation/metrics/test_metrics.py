import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    PositiveRanks,
    average_precision,
    map_at_k,
    map_at_r,
    mean_over_queries,
    precision_at_k,
    r_precision,
    recall_at_k,
    reciprocal_rank,
)

# Three queries in a gallery of 6: positives at 1, 3, 5; none; at 4.
RANKS = PositiveRanks([1, 3, 5, 4], [0, 3, 3, 4], num_references=6)


@pytest.mark.parametrize(
    "values, by_hand",
    [
        (map_at_r(RANKS), [(1 / 1 + 2 / 3) / 3, np.nan, 0.0]),
        (r_precision(RANKS), [2 / 3, np.nan, 0.0]),
        (reciprocal_rank(RANKS), [1.0, np.nan, 1 / 4]),
        (average_precision(RANKS), [(1 + 2 / 3 + 3 / 5) / 3, np.nan, 1 / 4]),
        (recall_at_k(RANKS, 3), [1.0, np.nan, 0.0]),
        (recall_at_k(RANKS, 4), [1.0, np.nan, 1.0]),
        (recall_at_k(RANKS, 100), [1.0, np.nan, 1.0]),
        (precision_at_k(RANKS, 3), [2 / 3, np.nan, 0.0]),
        (map_at_k(RANKS, 1), [1.0, np.nan, 0.0]),
        (map_at_k(RANKS, 2), [1 / 2, np.nan, 0.0]),
        (map_at_k(RANKS, 4), [(1 + 2 / 3) / 3, np.nan, 1 / 4]),
        (map_at_k(RANKS, 100), [(1 + 2 / 3 + 3 / 5) / 3, np.nan, 1 / 4]),
    ],
)
def test_worked_example(values, by_hand):
    np.testing.assert_allclose(values, by_hand, rtol=1e-15)


def random_ranks(seed, num_queries=30, num_references=25):
    generator = np.random.default_rng(seed)
    relevant = generator.random((num_queries, num_references)) < 0.2
    ranks = [np.flatnonzero(row) + 1 for row in relevant]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in ranks])])
    return relevant, PositiveRanks(
        np.concatenate(ranks), offsets, num_references
    )


def test_average_precision_against_scikit_learn():
    relevant, ranks = random_ranks(0)
    scores = -np.arange(relevant.shape[1])
    for row, value in zip(relevant, average_precision(ranks), strict=True):
        if row.any():
            expected = average_precision_score(row, scores)
            assert value == pytest.approx(expected)
        else:
            assert np.isnan(value)


@pytest.mark.parametrize("seed", range(3))
def test_identities(seed):
    _, ranks = random_ranks(seed)
    found = ~ranks.lone
    np.testing.assert_array_equal(
        recall_at_k(ranks, 1), precision_at_k(ranks, 1)
    )
    recall = [recall_at_k(ranks, k)[found] for k in range(1, 26)]
    assert (np.diff(recall, axis=0) >= 0).all() and recall[-1].all()
    assert (map_at_r(ranks) <= r_precision(ranks))[found].all()
    assert (map_at_r(ranks) <= average_precision(ranks))[found].all()
    np.testing.assert_array_equal(map_at_k(ranks, 25), average_precision(ranks))
    np.testing.assert_array_equal(map_at_k(ranks, 1), recall_at_k(ranks, 1))


def test_blocks_of_queries_change_no_bit():
    _, ranks = random_ranks(0)
    cut = 11
    parts = [
        PositiveRanks(
            ranks.ranks[: ranks.offsets[cut]], ranks.offsets[: cut + 1], 25
        ),
        PositiveRanks(
            ranks.ranks[ranks.offsets[cut] :],
            ranks.offsets[cut:] - ranks.offsets[cut],
            25,
        ),
    ]
    np.testing.assert_array_equal(
        np.concatenate([map_at_r(part) for part in parts]), map_at_r(ranks)
    )
    joined = PositiveRanks.concatenate(parts)
    np.testing.assert_array_equal(joined.ranks, ranks.ranks)
    np.testing.assert_array_equal(joined.offsets, ranks.offsets)


def test_cut_ranks_give_what_they_can():
    cut = PositiveRanks([1, 3], [0, 2], 50, num_positives=[3], max_rank=4)
    assert map_at_r(cut) == pytest.approx([(1 + 2 / 3) / 3])
    assert recall_at_k(cut, 4) == [1.0]
    assert map_at_k(cut, 2) == [1 / 2]


@pytest.mark.parametrize(
    "metric",
    [
        r_precision,
        map_at_r,
        average_precision,
        reciprocal_rank,
        lambda ranks: recall_at_k(ranks, 3),
        lambda ranks: precision_at_k(ranks, 3),
        lambda ranks: map_at_k(ranks, 3),
    ],
)
def test_ranks_cut_too_early_are_refused(metric):
    cut = PositiveRanks([1], [0, 1], 50, num_positives=[3], max_rank=2)
    with pytest.raises(UsageError, match="cut at max_rank=2"):
        metric(cut)


def test_mean_leaves_lone_queries_out():
    assert mean_over_queries(np.array([1.0, np.nan, 0.0])) == 0.5


def test_mean_of_lone_queries_is_refused():
    with pytest.raises(UsageError, match="2 queries, all without one"):
        mean_over_queries(np.array([np.nan, np.nan]))
