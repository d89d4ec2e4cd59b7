"""The index of a SavedModel finds what the evaluation's index finds."""

import importlib.util
import sys

import numpy as np
import pytest
import tensorflow as tf

from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex
from keras_dml.evaluation.index.scann_searcher import ScannShape
from keras_dml.export import ExportOptions, search_ops
from keras_dml.export.search_ops import ScannOps
from keras_dml.export.served_index import NO_SCORE, ServedIndex

RNG = np.random.default_rng(0)
NEEDS_SCANN = pytest.mark.skipif(
    importlib.util.find_spec("scann") is None, reason="ScaNN is not installed."
)
INDEXES = ["exact", pytest.param("scann", marks=NEEDS_SCANN)]
ROWS = RNG.normal(size=(60, 8)).astype("float32")
QUERIES = RNG.normal(size=(7, 8)).astype("float32")
STRINGS = np.array([f"image {row}" for row in RNG.permutation(60)])
INTEGERS = RNG.permutation(1000)[:60]


def make_index(rows=ROWS, ids=STRINGS, index="exact", metric="cosine", **more):
    labels = np.zeros(len(rows), "int64")
    gallery = EmbeddingSet(rows, labels, ids)
    return ServedIndex(gallery, metric, index, **more)


def search(index, queries, k, usable=None):
    found = index.search(
        tf.constant(queries, tf.float32), tf.constant(k), usable
    )
    ids = found["ids"].numpy()
    if ids.dtype == object:
        ids = np.array(ids.astype("S"), dtype="S").astype(str)
    return ids, found["scores"].numpy(), found["ok"].numpy()


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("ids", [STRINGS, INTEGERS], ids=["str", "int"])
def test_agrees_with_the_exact_index(index, metric, ids):
    rows, queries = ROWS + 3.0, QUERIES + 3.0
    exact = ExactIndex(metric).build(rows, ids)
    expected_ids, expected_scores = exact.search(queries, 9)
    found, scores, ok = search(make_index(rows, ids, index, metric), queries, 9)
    np.testing.assert_array_equal(found, expected_ids)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-4)
    assert ok.all()


def test_scores_of_near_duplicates_are_those_of_the_exact_index():
    spread = np.geomspace(1e-4, 1e-2, 60)[:, None].astype("float32")
    rows = np.concatenate([np.ones((60, 8), "float32") * 100 + spread, -ROWS])
    ids = RNG.permutation(120)
    exact = ExactIndex("euclidean").build(rows, ids)
    expected_ids, expected_scores = exact.search(rows[:9], 60)
    index = make_index(rows, ids, metric="euclidean")
    found, scores, _ = search(index, rows[:9], 60)
    np.testing.assert_array_equal(found, expected_ids)
    np.testing.assert_allclose(scores, expected_scores, 1e-4)


@pytest.mark.parametrize("index", INDEXES)
def test_labels_belong_to_the_ids(index):
    names = ["cat", "dög", "owl"]
    labels = np.arange(60) % 3
    gallery = EmbeddingSet(ROWS, labels, INTEGERS, class_names=names)
    served = ServedIndex(gallery, "cosine", index)
    found = served.search(tf.constant(QUERIES), tf.constant(70))
    of = dict(zip(INTEGERS.tolist(), labels.tolist(), strict=True))
    for ids, texts in zip(
        found["ids"].numpy(), found["labels"].numpy(), strict=True
    ):
        assert [text.decode() for text in texts[:60]] == [
            names[of[one]] for one in ids[:60].tolist()
        ]
        assert set(texts[60:]) == {b""}


@pytest.mark.parametrize("index", INDEXES)
def test_equal_scores_are_ordered_by_id(index):
    rows = np.repeat(ROWS[:3], 2, axis=0)
    ids = np.array([5, 1, 0, 4, 3, 2])
    found, scores, _ = search(make_index(rows, ids, index), ROWS[:3], 2)
    np.testing.assert_array_equal(found, [[1, 5], [0, 4], [2, 3]])
    np.testing.assert_allclose(scores, 1.0, atol=1e-6)


@pytest.mark.parametrize("index", INDEXES)
@pytest.mark.parametrize("ids", [STRINGS[:5], INTEGERS[:5]], ids=["str", "int"])
def test_places_without_a_neighbor(index, ids):
    """More than there are, an own `k`, and queries that cannot be answered."""
    queries = QUERIES[:4].copy()
    queries[1, 3] = np.nan
    served = make_index(ROWS[:5], ids, index)
    found, scores, ok = search(
        served, queries, [7, 7, 2, 7], [True, True, True, False]
    )
    no_id = served.facts["no_id"]
    assert ok.tolist() == [True, False, True, False]
    assert found.shape == scores.shape == (4, 7)
    assert set(found[0, :5]) == set(ids)
    for row, count in enumerate([5, 0, 2, 0]):
        assert (found[row, count:] == no_id).all()
        assert (scores[row, count:] == np.float32(NO_SCORE)).all()
        assert (scores[row, :count] >= -1.0001).all()
    assert np.isfinite(scores).all()


@pytest.mark.parametrize("index", INDEXES)
def test_no_queries(index):
    found, scores, ok = search(make_index(index=index), QUERIES[:0], 3)
    assert found.shape == scores.shape == (0, 3)
    assert ok.shape == (0,)


@pytest.mark.parametrize("k", [0, -1, 101, [1, 101, 1, 1, 1, 1, 1]])
def test_k_out_of_range(k):
    index = make_index(max_k=100)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"in 1\.\.100"):
        search(index, QUERIES, k)


def test_another_number_of_ks_than_queries():
    message = "one number or one for each of"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        search(make_index(), QUERIES, [1, 2])


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_extreme_and_zero_queries(metric):
    queries = np.stack([1e30 * ROWS[3], 1e-30 * ROWS[3], 0 * ROWS[3]])
    if metric == "euclidean":
        queries = queries[1:]
    ids, scores = ExactIndex(metric).build(ROWS, INTEGERS).search(queries, 3)
    found, actual, ok = search(
        make_index(ids=INTEGERS, metric=metric), queries, 3
    )
    assert ok.all()
    np.testing.assert_array_equal(found, ids)
    np.testing.assert_allclose(actual, scores, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("most", [1, 2, 3, 7, 8])
def test_blocks_do_not_show(most, monkeypatch):
    monkeypatch.setattr(search_ops, "SCORES_PER_BLOCK", most * len(ROWS))
    found, scores, _ = search(make_index(), QUERIES, 4)
    expected, expected_scores = (
        ExactIndex().build(ROWS, STRINGS).search(QUERIES, 4)
    )
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(scores, expected_scores, atol=1e-6)


@NEEDS_SCANN
@pytest.mark.parametrize(
    "shape", [ScannShape("hashing"), ScannShape("tree", 40)]
)
def test_scanns_lists_are_whole(shape):
    """Leaves hold few rows; a query that finds too few looks into all."""
    generator = np.random.default_rng(1)
    rows = generator.normal(size=(2000, 16)).astype("float32")
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    ops = ScannOps(rows, "dot_product", shape)
    for k, least in ((10, 0.5), (1500, 0.99)):
        found, scores = (
            one.numpy() for one in ops(tf.constant(rows[:20]), tf.constant(k))
        )
        assert np.isfinite(scores).all()
        assert (found[:, :1] == np.arange(20)[:, None]).mean() > 0.9
        exact = np.argsort(-rows[:20] @ rows.T, axis=1)[:, :k]
        shares = [
            len(set(one) & set(other)) / k
            for one, other in zip(found, exact, strict=True)
        ]
        assert np.mean(shares) > least
        assert all(len(set(row)) == k for row in found.tolist())


@NEEDS_SCANN
def test_auto_follows_scanns_own_rule():
    few = EmbeddingSet(ROWS, STRINGS)
    assert ServedIndex(few, "cosine").kind == "exact"
    assert ServedIndex(few, "cosine", "scann").kind == "scann"
    rows = RNG.normal(size=(20_000, 2))
    many = EmbeddingSet(rows, np.zeros(20_000, "int64"))
    assert ServedIndex(many, "cosine").kind == "scann"
    assert ServedIndex(many, "cosine", "exact").kind == "exact"


def test_auto_searches_exactly_without_scann(monkeypatch):
    monkeypatch.setitem(sys.modules, "scann.scann_ops.py", None)
    rows = RNG.normal(size=(20_000, 2))
    many = EmbeddingSet(rows, np.zeros(20_000, "int64"))
    assert ServedIndex(many, "cosine").kind == "exact"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"index": "scan"}, r"`index` .*'scan'\. Did you mean 'scann'"),
        ({"max_k": 0}, "`max_k` must be a positive integer"),
        ({"references": 3}, "`references` must be .*as `References`"),
    ],
)
def test_an_index_that_cannot_be(arguments, message):
    with pytest.raises(UsageError, match=message):
        ExportOptions(with_index=True, **arguments)


def test_without_scann_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scann.scann_ops.py", None)
    with pytest.raises(UsageError, match=r"keras-dml\[scann\]"):
        make_index(index="scann")
