"""Objects of several references, against loops over objects."""

import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    ExactIndex,
    ScannIndex,
    ViewIndex,
    evaluate_lists,
    merge_views,
    views,
)

RNG = np.random.default_rng(3)
CENTERS = RNG.standard_normal((12, 8))
# Two looks of each object, and one to six references.
OBJECTS = np.repeat(np.arange(12), RNG.integers(1, 7, 12))
LOOKS = RNG.standard_normal((2, 12, 8))
ROWS = (
    CENTERS[OBJECTS]
    + LOOKS[RNG.integers(0, 2, len(OBJECTS)), OBJECTS]
    + 0.2 * RNG.standard_normal((len(OBJECTS), 8))
).astype("float32")
QUERIES = CENTERS + LOOKS[0]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def by_loops(merge, metric):
    """The objects of each query, the nearest first, and their scores."""
    scores = np.zeros((len(QUERIES), 12))
    for row, query in enumerate(QUERIES):
        for one in range(12):
            views = ROWS[one == OBJECTS]
            if metric == "cosine":
                query, views = unit(query), unit(views)
            if merge == "mean":
                views = views.mean(axis=0, keepdims=True)
                views = unit(views) if metric == "cosine" else views
            near = views @ query
            if metric == "euclidean":
                near = -((views - query) ** 2).sum(axis=1)
            scores[row, one] = near.max()
    order = np.argsort(-scores, axis=1)
    return order, np.take_along_axis(scores, order, axis=1)


@pytest.mark.parametrize("k", [1, 4, 50])
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "dot"])
@pytest.mark.parametrize("merge", ["mean", "max"])
def test_the_nearest_objects_are_found(merge, metric, k):
    index = ViewIndex(merge, ExactIndex(metric)).build(ROWS, OBJECTS)
    objects, scores = by_loops(merge, metric)
    found, found_scores = index.search(QUERIES, k)
    np.testing.assert_array_equal(found, objects[:, :k])
    np.testing.assert_allclose(found_scores, scores[:, :k], atol=1e-4)


def test_few_queries_at_a_time_find_the_same(monkeypatch):
    index = ViewIndex("max").build(ROWS, OBJECTS)
    objects, scores = index.search(QUERIES, 4)
    monkeypatch.setattr(views, "ROWS_PER_BLOCK", 1)
    found, found_scores = index.search(QUERIES, 4)
    np.testing.assert_array_equal(found, objects)
    np.testing.assert_allclose(found_scores, scores, atol=1e-6)


def test_mean_and_max_differ():
    mean, maximum = by_loops("mean", "cosine"), by_loops("max", "cosine")
    assert (mean[0] != maximum[0]).any()


@pytest.mark.parametrize("merge", ["mean", "max"])
def test_lists_of_objects_are_evaluated(merge):
    names = np.array([f"object {one:02}" for one in range(12)])
    index = ViewIndex(merge).build(ROWS, names[OBJECTS])
    lists, _ = index.search(QUERIES, k=3)
    result = evaluate_lists(
        lists, names, index.objects, index.objects, metrics=["recall@1"]
    )
    nearest = by_loops(merge, "cosine")[0][:, 0]
    wanted = np.mean(nearest == np.arange(12))
    assert 0 < wanted <= 1
    assert result.metrics["recall@1"] == pytest.approx(wanted)
    assert repr(index) == f"ViewIndex: 12 objects, by {merge}"


def test_another_index_may_hold_the_rows():
    pytest.importorskip("scann")
    index = ViewIndex("max", ScannIndex()).build(ROWS, OBJECTS)
    found, _ = index.search(QUERIES, k=2)
    np.testing.assert_array_equal(found, by_loops("max", "cosine")[0][:, :2])


def test_views_that_cancel_have_no_direction():
    means, names = merge_views([[1.0, 0.0], [-3.0, 0.0]], [5, 5])
    assert names.tolist() == [5]
    np.testing.assert_array_equal(means, [[0.0, 0.0]])


def test_what_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="`merge` must be one of"):
        ViewIndex("median")
    with pytest.raises(UsageError, match="built before"):
        ViewIndex().search(QUERIES, 1)
    with pytest.raises(UsageError, match="`normalize` must be True or False"):
        merge_views(ROWS, OBJECTS, normalize="false")
    with pytest.raises(UsageError, match="`objects`"):
        ViewIndex().build(ROWS, OBJECTS[:3])
