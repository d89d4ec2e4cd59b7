import numpy as np
import pytest

from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import EmbeddingSet
from keras_dml.evaluation import evaluate_retrieval
from keras_dml.report.retrieval import (
    query_rows,
    typical_queries,
    worst_queries,
)
from keras_dml.report.thumbnails import Thumbnails

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(6), 5)
ROWS = (
    RNG.normal(size=(6, 3))[LABELS] + 0.8 * RNG.normal(size=(30, 3))
).astype("float32")
NAMES = [f"kind {label}" for label in range(6)]


def embeddings(**more):
    ids = [f"image {row}" for row in range(30)]
    return EmbeddingSet(ROWS, LABELS, ids, class_names=NAMES, **more)


@pytest.fixture(scope="module")
def images():
    pixels = np.zeros((30, 8, 8, 1), np.uint8)
    pixels += np.arange(30, dtype=np.uint8)[:, None, None, None]
    return Thumbnails(
        Manifest("test", LABELS, NAMES, np.arange(30), images=pixels)
    )


def test_typical_queries_are_of_as_many_classes_as_there_are():
    for count, expected in ((4, [1] * 4), (6, [1] * 6), (9, [1] * 3 + [2] * 3)):
        chosen = typical_queries(embeddings(), seed=3, count=count)
        _, per_class = np.unique(LABELS[chosen], return_counts=True)
        assert sorted(per_class) == expected
        assert len(set(chosen.tolist())) == count
    same = typical_queries(embeddings(), seed=3)
    np.testing.assert_array_equal(same, typical_queries(embeddings(), seed=3))
    assert (same != typical_queries(embeddings(), seed=4)).any()


def test_the_worst_are_at_most_two_of_a_class():
    result = evaluate_retrieval(ROWS, LABELS)
    values = result.per_query["map@r"]
    chosen = worst_queries(embeddings(), result, count=8)
    assert (np.diff(values[chosen]) >= 0).all()
    _, per_class = np.unique(LABELS[chosen], return_counts=True)
    assert per_class.max() <= 2
    # Whoever was passed over is better, or third of its class.
    for query in np.setdiff1d(np.arange(30), chosen):
        better = values[query] >= values[chosen[-1]]
        of_class = values[chosen][LABELS[chosen] == LABELS[query]]
        assert better or (values[query] >= of_class).sum() == 2


def test_perfect_and_lone_queries_are_not_the_worst():
    rows = np.eye(3)[[0, 0, 1, 1, 2]].astype("float32")
    labels = np.array([0, 0, 1, 1, 2])
    result = evaluate_retrieval(rows, labels)
    assert len(worst_queries(EmbeddingSet(rows, labels), result)) == 0


def test_rows_show_what_a_search_by_hand_finds(images):
    unit = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    result = evaluate_retrieval(ROWS, LABELS)
    queries = np.array([4, 17])
    for query, row in zip(
        queries,
        query_rows(queries, embeddings(), result, images, normalize=True),
        strict=True,
    ):
        scores = unit @ unit[query]
        scores[query] = -np.inf
        nearest = np.argsort(-scores)[:8]
        assert row.query.id == f"image {query}"
        assert row.query.uri == images.uri(query)
        assert [one.id for one in row.found] == [f"image {n}" for n in nearest]
        assert [one.uri for one in row.found] == list(map(images.uri, nearest))
        right = LABELS[nearest] == LABELS[query]
        assert [one.right for one in row.found] == right.tolist()
        np.testing.assert_allclose(
            [one.score for one in row.found], scores[nearest], atol=1e-5
        )
        ranks = LABELS[np.argsort(-scores)] == LABELS[query]
        assert row.first_rank == np.argmax(ranks) + 1
        assert row.map_at_r == result.per_query["map@r"][query]


def test_queries_find_only_the_gallery(images):
    role = np.where(np.arange(30) % 3, "gallery", "query")
    parted = embeddings(role=role)
    queries = role == "query"
    result = evaluate_retrieval(
        ROWS[queries], LABELS[queries], ROWS[~queries], LABELS[~queries]
    )
    chosen = typical_queries(parted)
    for row in query_rows(chosen, parted, result, images, normalize=True):
        assert int(row.query.id.split()[1]) % 3 == 0
        assert all(int(one.id.split()[1]) % 3 for one in row.found)


def test_a_lone_query_has_no_rank(images):
    labels = LABELS.copy()
    labels[0] = 6
    lone = EmbeddingSet(ROWS, labels)
    result = evaluate_retrieval(ROWS, labels)
    (row,) = query_rows(np.array([0]), lone, result, images, normalize=True)
    assert row.first_rank is None and row.map_at_r is None
