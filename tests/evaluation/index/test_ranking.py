import numpy as np
import pytest

from keras_dml.evaluation.index import ranking
from keras_dml.evaluation.index.ranking import MOST_PASSES, nearest, ranks_of


def rows():
    generator = np.random.default_rng(0)
    yield generator.standard_normal(3000).astype("float32")
    yield generator.integers(5, size=3000).astype("float32")
    yield np.zeros(3000, "float32")
    # A few ties among many columns.
    row = generator.standard_normal(3000).astype("float32")
    row[1000:1010] = row[2000]
    row[7] = -np.inf
    yield row


@pytest.mark.parametrize("scores", list(rows()))
@pytest.mark.parametrize("count", [0, 1, 5, MOST_PASSES + 1, 2000])
def test_ranks_equal_those_of_a_stable_sort(scores, count):
    columns = np.random.default_rng(1).permutation(3000)[:count]
    columns = columns[columns != 7]
    positions = np.empty(3000, int)
    positions[np.argsort(-scores, kind="stable")] = np.arange(1, 3001)
    np.testing.assert_array_equal(
        ranks_of(scores, columns), np.sort(positions[columns])
    )


@pytest.mark.parametrize("scores", list(rows()))
@pytest.mark.parametrize("k", [1, 2, 3, 100, 1499, 2999, 3000])
def test_nearest_equal_those_of_a_stable_sort(scores, k):
    expected = np.argsort(-scores, kind="stable")[:k]
    np.testing.assert_array_equal(nearest(scores, k), expected)


@pytest.mark.parametrize("least", [1, 10**9])
@pytest.mark.parametrize("rows", [1, 31, 33, 200])
def test_rows_come_back_in_order(least, rows, monkeypatch):
    monkeypatch.setattr(ranking, "MIN_SCORES_FOR_THREADS", least)
    matrix = np.arange(rows * 2).reshape(rows, 2)
    found = ranking.map_rows(
        lambda row, name: (row.sum(), name), matrix, range(rows)
    )
    assert found == [(4 * row + 1, row) for row in range(rows)]
