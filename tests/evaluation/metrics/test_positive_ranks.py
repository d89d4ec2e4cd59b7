import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex, PositiveRanks, ranks_from_ids


def make(rows, tied, seed):
    generator = np.random.default_rng(seed)
    if tied:
        embeddings = generator.integers(-1, 2, (rows, 3)).astype("float32")
    else:
        embeddings = generator.standard_normal((rows, 5)).astype("float32")
    return embeddings, generator.integers(4, size=rows)


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "dot"])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("own_gallery", [False, True])
@pytest.mark.parametrize("strings", [False, True])
def test_index_and_full_lists_agree(metric, tied, own_gallery, strings):
    references, gallery = make(40, tied, 0)
    ids = np.random.default_rng(3).permutation(1000)[:40]
    ids = ids.astype(str) if strings else ids
    queries, labels, query_ids = references, gallery, ids
    if not own_gallery:
        queries, labels = make(23, tied, 1)
        query_ids = None
    index = ExactIndex(metric).build(references, ids)
    direct = index.positive_ranks(queries, labels, gallery, query_ids)
    lists, _ = index.search(queries, 40, exclude_ids=query_ids)
    listed = ranks_from_ids(lists, labels, ids, gallery, query_ids)
    np.testing.assert_array_equal(direct.ranks, listed.ranks)
    np.testing.assert_array_equal(direct.offsets, listed.offsets)
    np.testing.assert_array_equal(direct.num_positives, listed.num_positives)
    assert direct.max_rank is listed.max_rank is None


@pytest.mark.parametrize("exclude", [False, True])
def test_short_lists_agree_with_cut_ranks(exclude):
    references, labels = make(40, True, 0)
    ids = np.arange(40)
    index = ExactIndex().build(references, ids)
    lists, _ = index.search(references, 9, exclude_ids=ids if exclude else None)
    listed = ranks_from_ids(lists, labels, ids, labels, ids)
    # A list without the query itself is one rank longer.
    assert listed.max_rank == (9 if exclude else 8)
    direct = index.positive_ranks(
        references, labels, labels, ids, max_rank=listed.max_rank
    )
    np.testing.assert_array_equal(direct.ranks, listed.ranks)
    np.testing.assert_array_equal(direct.offsets, listed.offsets)
    np.testing.assert_array_equal(direct.num_positives, listed.num_positives)
    assert direct.num_positives.sum() > len(direct.ranks)


def test_own_id_is_passed_over_wherever_it_stands():
    ranks = ranks_from_ids(
        [[7, 5, 9], [7, 9, 5]], [0, 0], [5, 7, 9], [0, 1, 0], [5, 9]
    )
    np.testing.assert_array_equal(ranks.ranks, [2, 2])
    np.testing.assert_array_equal(ranks.num_positives, [1, 1])


def test_lone_queries_have_empty_slices():
    ranks = ranks_from_ids([[0, 1], [0, 1]], [5, 0], [0, 1], [0, 0])
    np.testing.assert_array_equal(ranks.offsets, [0, 0, 2])
    assert (ranks.num_lone, ranks.num_queries) == (1, 2)
    np.testing.assert_array_equal(ranks.lone, [True, False])
    np.testing.assert_array_equal(ranks.owners, [1, 1])


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([0, 1], [0], [0, 1], [0, 0]), "`neighbor_ids` must have the shape"),
        (([[0, 9]], [0], [0, 1], [0, 0]), "must be among .* Received: .*9"),
        (([[0, 1]], [0], [1, 1], [0, 0]), "must be unique.*: 1 more"),
        (([[0, 1]], [0, 1], [0, 1], [0, 0]), "`query_labels` must have the"),
        (([[0, 1]], [0], [0, 1], [0]), "`reference_labels` must have the"),
        (([[0, 1]], [0], [0, 1], [0, 0], ["a"]), "both be integers or both"),
        (([[0, 1, 0]], [0], [0, 1], [0, 0]), "`neighbor_ids`.*once.*: .*0"),
        (([[0, 1]], [0], [1, 1], [0, 0]), "`reference_ids` must be unique"),
        (([[0, 1]], [0], None, [0, 0]), "`reference_ids` must have the shape"),
        (([[0], [0, 1]], [0] * 2, [0, 1], [0, 0]), "`neighbor_ids` must be"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(UsageError, match=message):
        ranks_from_ids(*arguments)


def test_refuses_inconsistent_fields():
    with pytest.raises(ValueError, match="`offsets` must begin with 0"):
        PositiveRanks([1, 2], [0, 1], 5)
    with pytest.raises(ValueError, match="`num_positives` must have one"):
        PositiveRanks([1, 2], [0, 2], 5, num_positives=[2, 1])


def test_ranks_that_were_dropped_do_not_come_back():
    """They counted as no hits: a precision at 10 was measured at 5."""
    ranks = PositiveRanks([1, 7], [0, 2], 10)
    assert ranks.up_to(5).up_to(10).max_rank == 5
    assert ranks.up_to(10).up_to(5).max_rank == 5


def test_joined_blocks_are_as_long_as_the_shortest():
    ranks = PositiveRanks([1, 3], [0, 2], 5)
    for parts in ([ranks, ranks.up_to(2)], [ranks.up_to(2), ranks.up_to(4)]):
        for order in (parts, parts[::-1]):
            joined = PositiveRanks.concatenate(order)
            assert joined.max_rank == 2
            assert joined.ranks.tolist() == [1, 1]
            assert joined.num_positives.tolist() == [2, 2]


def test_lists_of_all_others_are_whole():
    """The gallery holds the query itself, which no list has to hold."""
    references, labels = make(12, False, 0)
    ids = np.arange(12)
    index = ExactIndex().build(references)
    lists, _ = index.search(references, 11, exclude_ids=ids)
    listed = ranks_from_ids(lists, labels, ids, labels, ids)
    direct = index.positive_ranks(references, labels, labels, ids)
    assert listed.max_rank is None
    np.testing.assert_array_equal(listed.ranks, direct.ranks)
    stranger = np.append(ids[:-1], 99)
    assert ranks_from_ids(lists, labels, ids, labels, stranger).max_rank == 11
