import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation.index import spaces
from keras_dml.evaluation.index.spaces import METRICS, Space


def make(rows, seed=0, dim=5):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((rows, dim)).astype("float32")


def scores_of(space, queries, references):
    queries, rows = space.transform(queries), space.transform(references)
    return space.scores(queries, rows, space.biases(rows))


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_the_metric(metric):
    references, queries = make(40) + 2, make(8, seed=1) + 2
    found = scores_of(Space.fit(references, metric), queries, references)
    for query, row in zip(queries.astype("f8"), found, strict=True):
        if metric == "euclidean":
            expected = -np.sum((references - query) ** 2, axis=1)
        else:
            expected = references @ query
        if metric == "cosine":
            norms = np.linalg.norm(references, axis=1)
            expected = expected / (np.linalg.norm(query) * norms)
        np.testing.assert_allclose(row, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows_per_block", [1, 7, 10**6])
def test_blocks_do_not_change_unit_rows(rows_per_block, monkeypatch):
    monkeypatch.setattr(spaces, "ROWS_PER_BLOCK", rows_per_block)
    rows = make(50) * np.float32(1e20)
    rows[3] = 0
    found = Space.fit(rows, "cosine").transform(rows)
    norms = np.sqrt(np.sum(rows.astype("f8") ** 2, axis=1))
    norms[3] = 1
    expected = (rows / norms[:, None]).astype("float32")
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == "float32" and (found[3] == 0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_embeddings_stay_as_they_are(metric):
    rows = make(20) + 3
    copy = rows.copy()
    Space.fit(rows, metric).transform(rows)
    np.testing.assert_array_equal(rows, copy)


def test_distances_on_a_grid_stay_exact():
    grid = np.arange(-8, 9, dtype="float32")[:, None] / 4 + 1000
    found = scores_of(Space.fit(grid, "euclidean"), grid, grid)
    np.testing.assert_array_equal(found, -((grid - grid.T) ** 2))


def test_a_constant_column_does_not_matter():
    rows = make(20)
    rows[:, 2] = 12345.678
    found = scores_of(Space.fit(rows, "euclidean"), rows[:4], rows)
    kept = np.delete(rows, 2, axis=1)
    expected = scores_of(Space.fit(kept, "euclidean"), kept[:4], kept)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "dot"])
def test_refuses_what_overflows(metric):
    rows = make(4)
    rows[2] = 1e25
    with pytest.raises(UsageError, match="too large to be compared"):
        Space.fit(make(4), metric).transform(rows)
