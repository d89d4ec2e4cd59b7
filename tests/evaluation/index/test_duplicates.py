import numpy as np
import pytest

from keras_dml.evaluation import ExactIndex
from keras_dml.evaluation.index import spaces
from keras_dml.evaluation.index.spaces import duplicate_rows


def test_rows_equal_to_an_earlier_row():
    rows = np.random.default_rng(0).standard_normal((50, 4)).astype("f4")
    rows[[9, 30, 49]] = rows[3]
    rows[20] = rows[10]
    found, originals = duplicate_rows(rows)
    np.testing.assert_array_equal(found, [9, 20, 30, 49])
    np.testing.assert_array_equal(originals, [3, 10, 3, 3])


def test_negative_zero_equals_zero():
    found, originals = duplicate_rows(np.array([[0.0], [-0.0]], "float32"))
    assert (found, originals) == ([1], [0])


def test_permuted_and_distinct_rows_are_no_duplicates():
    rows = np.array([[1, 2], [2, 1], [1, 1], [3, 0]], "float32")
    assert len(duplicate_rows(rows)[0]) == 0


def near_duplicates(seed):
    """A query, the same row as a reference, rows close to it, and others."""
    generator = np.random.default_rng(seed)
    query = (3 * generator.standard_normal(8)).astype("float32")
    close = query + 1e-4 * generator.standard_normal((20, 8))
    far = 3 * generator.standard_normal((20, 8))
    references = np.concatenate([close, far, query[None]]).astype("float32")
    return query[None], references


@pytest.mark.parametrize("seed", range(5))
def test_near_duplicates_are_ordered_by_their_distances(seed):
    """An equal row came 14th: products blur what is nearer than rounding."""
    query, references = near_duplicates(seed)
    index = ExactIndex("euclidean").build(references)
    found, scores = index.search(query, 41)
    apart = (references - query).astype("float64")
    expected = -np.einsum("ij,ij->i", apart, apart)
    assert found[0].tolist() == np.argsort(-expected, kind="stable").tolist()
    np.testing.assert_allclose(scores[0], expected[found[0]], rtol=1e-3)
    assert found[0, 0] == 40 and scores[0, 0] == 0


def test_ranks_and_scores_see_near_duplicates_alike():
    query, references = near_duplicates(0)
    index = ExactIndex("euclidean").build(references)
    labels = np.arange(41) == 40
    ranks = index.positive_ranks(query, [True], labels)
    assert ranks.ranks.tolist() == [1]
    (positive,), (negative,) = index.nearest_scores(query, [True], labels)
    assert positive == 0 > negative == index.search(query, 2)[1][0, 1]


def test_blocks_do_not_change_near_duplicates(monkeypatch):
    _, references = near_duplicates(0)
    index = ExactIndex("euclidean").build(references)
    expected = index.search(references, 41)
    for pairs in (1, 100):
        monkeypatch.setattr(spaces, "NEAR_PAIRS", pairs)
        for a, b in zip(index.search(references, 41), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_equal_scores_are_ordered_by_id():
    for seed in range(50):
        query, references = near_duplicates(seed)
        index = ExactIndex("euclidean").build(references)
        found, scores = index.search(query, 41)
        tied = scores[0, 1:] == scores[0, :-1]
        assert (np.diff(found[0])[tied] > 0).all()
