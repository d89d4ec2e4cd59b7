import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex, Index
from keras_dml.evaluation.index import ranking
from tests.evaluation import naive

METRICS = ("cosine", "euclidean", "dot")


def make(rows, seed=0, dim=7):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((rows, dim)).astype("float32")


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("k", [1, 5, 29, 30, 100])
@pytest.mark.parametrize("num_queries", [1, 8])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_search_against_loops(metric, k, num_queries, dtype):
    references = make(30).astype(dtype)
    queries = make(num_queries, seed=1).astype(dtype)
    ids = np.random.default_rng(2).permutation(30)
    expected = naive.neighbors(queries, references, ids, None, metric)
    found, scores = ExactIndex(metric).build(references, ids).search(queries, k)
    np.testing.assert_array_equal(found, ids[np.array(expected)[:, :k]])
    assert found.shape == scores.shape == (num_queries, min(k, 30))
    assert scores.dtype == "float32"
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_scores(metric):
    references, queries = make(5), make(3, seed=1)
    found, scores = ExactIndex(metric).build(references).search(queries, 5)
    for query, row, values in zip(queries, found, scores, strict=True):
        other = references[row]
        if metric == "euclidean":
            expected = -np.sum((query - other) ** 2, axis=1)
        else:
            expected = other @ query
        if metric == "cosine":
            expected /= np.linalg.norm(query) * np.linalg.norm(other, axis=1)
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("block_rows", [1, 3, 5, 40])
@pytest.mark.parametrize("rows, dim", [(54, 128), (179, 512), (187, 61)])
def test_duplicates_tie_whatever_the_blocks(metric, block_rows, rows, dim):
    # OpenBLAS rounds the last `rows % 4` columns of small products otherwise.
    references = make(rows, dim=dim)
    same = np.append(np.arange(0, 34, 2), np.arange(rows - 3, rows))
    references[same] = references[same[0]]
    queries = make(40, seed=1, dim=dim)
    index = ExactIndex(metric, block_bytes=4 * rows * block_rows)
    index.build(references)
    found, _ = index.search(queries, rows)
    for row in found:
        place = np.flatnonzero(row == same[0])[0]
        np.testing.assert_array_equal(row[place : place + 20], same)
    gallery = np.isin(np.arange(rows), same)
    ranks = index.positive_ranks(queries, np.ones(40, int), gallery)
    assert (np.diff(ranks.ranks.reshape(40, 20), axis=1) == 1).all()


@pytest.mark.parametrize("metric", METRICS)
def test_nearest_scores_against_loops(metric):
    rows, ids = make(30), np.random.default_rng(1).permutation(30)
    labels = np.append(np.arange(29) % 4, 9)
    index = ExactIndex(metric, block_bytes=4 * 30 * 7).build(rows, ids)
    found, scores = index.search(rows, 29, exclude_ids=ids)
    positive, negative = index.nearest_scores(rows, labels, labels, ids)
    label_of = dict(zip(ids, labels, strict=True))
    for query in range(30):
        same = [label_of[one] == labels[query] for one in found[query]]
        expected = max(scores[query][same], default=-np.inf)
        assert positive[query] == expected
        assert negative[query] == scores[query][~np.array(same)].max()
    assert positive[29] == -np.inf


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("classes", [2, 90])
def test_blocks_and_threads_do_not_change_ranks(classes, threads, monkeypatch):
    if threads:
        monkeypatch.setattr(ranking, "MIN_SCORES_FOR_THREADS", 1)
    embeddings, labels = make(300), np.arange(300) % classes
    ids = np.arange(300)
    small = ExactIndex(block_bytes=4 * 300 * 70).build(embeddings)
    whole = ExactIndex().build(embeddings)
    a = small.positive_ranks(embeddings, labels, labels, ids)
    b = whole.positive_ranks(embeddings, labels, labels, ids)
    np.testing.assert_array_equal(a.ranks, b.ranks)
    np.testing.assert_array_equal(a.offsets, b.offsets)


def test_excluded_reference_comes_last_or_not_at_all():
    references = make(6)
    index = ExactIndex().build(references)
    found, scores = index.search(references, 5, exclude_ids=np.arange(6))
    assert (found != np.arange(6)[:, None]).all()
    found, scores = index.search(references, 6, exclude_ids=np.arange(6))
    np.testing.assert_array_equal(found[:, -1], np.arange(6))
    assert (scores[:, -1] == -np.inf).all()
    assert np.isfinite(scores[:, :-1]).all()


def test_unknown_excluded_ids_exclude_nothing():
    references = make(6)
    index = ExactIndex().build(references, list("abcdef"))
    found, _ = index.search(references, 1, exclude_ids=["z"] * 6)
    np.testing.assert_array_equal(found[:, 0], list("abcdef"))


def test_euclidean_is_accurate_far_from_the_origin():
    references, queries = make(200, dim=16), make(20, seed=1, dim=16)
    near = ExactIndex("euclidean").build(references).search(queries, 50)
    far = ExactIndex("euclidean").build(references.astype("f8") + 4096.0)
    found, scores = far.search(queries.astype("f8") + 4096.0, 50)
    expected = naive.neighbors(
        (queries + np.float32(4096)),
        (references + np.float32(4096)),
        np.arange(200),
        None,
        "euclidean",
    )
    np.testing.assert_array_equal(found, np.array(expected)[:, :50])
    np.testing.assert_allclose(scores, near[1], atol=0.05)


def test_zero_rows_score_zero():
    index = ExactIndex().build([[0.0, 0.0], [1.0, 0.0]])
    _, scores = index.search([[0.0, 0.0], [1.0, 1.0]], 2)
    assert (scores[0] == 0).all() and scores[1, 1] == 0


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_cosine_neither_overflows_nor_vanishes(scale):
    references = make(10)
    found, _ = ExactIndex().build(references * scale).search(make(4, 1), 10)
    expected, _ = ExactIndex().build(references).search(make(4, 1), 10)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("strings", [False, True])
def test_save_and_load(metric, strings, tmp_path):
    references, queries = make(20), make(6, seed=1)
    ids = np.random.default_rng(2).permutation(20)
    ids = ids.astype(str) if strings else ids
    labels = np.arange(20) % 3
    index = ExactIndex(metric, weights_hash="abc").build(references, ids)
    index.save(tmp_path / "deep" / "index.npz")
    loaded = ExactIndex.load(tmp_path / "deep" / "index.npz", "abc")
    assert loaded.metric == metric and loaded.weights_hash == "abc"
    np.testing.assert_array_equal(loaded.ids, ids)
    for a, b in zip(
        index.search(queries, 7), loaded.search(queries, 7), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        index.positive_ranks(references, labels, labels, ids).ranks,
        loaded.positive_ranks(references, labels, labels, ids).ranks,
    )
    assert [path.name for path in (tmp_path / "deep").iterdir()] == [
        "index.npz"
    ]


def test_load_refuses_other_weights(tmp_path):
    path = tmp_path / "index.npz"
    ExactIndex(weights_hash="abc").build(make(3)).save(path)
    with pytest.raises(UsageError, match=r"\(abc\). Received: xyz"):
        ExactIndex.load(path, weights_hash="xyz")


def test_load_refuses_what_is_no_index(tmp_path):
    with pytest.raises(UsageError, match="There is no file"):
        ExactIndex.load(tmp_path / "index.npz")
    (tmp_path / "text.npz").write_text("no index")
    with pytest.raises(UsageError, match="not a readable `.npz` file"):
        ExactIndex.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", embeddings=make(3))
    with pytest.raises(UsageError, match="must hold the arrays"):
        ExactIndex.load(tmp_path / "other.npz")


FIELDS = ("embeddings", "ids", "order", "offset", "metric", "weights_hash")


def test_load_never_runs_a_pickle(tmp_path):
    path = tmp_path / "pickle.npz"
    arrays = {name: np.array([{"a": 1}], dtype=object) for name in FIELDS}
    np.savez(path, **arrays)
    with pytest.raises(UsageError, match="a pickle, which is never loaded"):
        ExactIndex.load(path)


def test_build_replaces_and_returns_the_index():
    index = ExactIndex()
    assert isinstance(index, Index) and index.exact
    assert index.build(make(3)) is index
    index.build(make(4), list("dcba"))
    np.testing.assert_array_equal(index.ids, list("dcba"))


@pytest.mark.parametrize("metric", ["cosine", "dot"])
def test_adding_and_removing_equal_building(metric):
    embeddings, queries = make(40), make(9, seed=1)
    embeddings[30:33] = embeddings[3]
    labels = np.arange(40) % 4
    ids = np.random.default_rng(2).permutation(100)[:40]
    kept = np.delete(np.arange(40), [0, 12, 39])
    index = ExactIndex(metric).build(embeddings[:25], ids[:25])
    index.remove(ids[[12]]).add(embeddings[25:], ids[25:])
    index.remove(ids[[39, 0]])
    whole = ExactIndex(metric).build(embeddings[kept], ids[kept])
    np.testing.assert_array_equal(index.ids, ids[kept])
    for a, b in zip(
        index.search(queries, 37), whole.search(queries, 37), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(
        index.positive_ranks(queries, labels[:9], labels[kept]).ranks,
        whole.positive_ranks(queries, labels[:9], labels[kept]).ranks,
    )


def test_several_labels_for_each_image():
    embeddings = make(30)
    labels = [{i % 3, 3 + i % 4} for i in range(30)]
    index = ExactIndex().build(embeddings, np.arange(30)[::-1])
    ranks = index.positive_ranks(embeddings[:5], labels[:5], labels)
    neighbors, _ = index.search(embeddings[:5], 30)
    for query in range(5):
        slots = slice(*ranks.offsets[query : query + 2])
        expected = [
            rank
            for rank, found in enumerate(neighbors[query], 1)
            if labels[query] & labels[29 - found]
        ]
        np.testing.assert_array_equal(ranks.ranks[slots], expected)


def test_refuses_use_before_build():
    with pytest.raises(UsageError, match="must be built before"):
        ExactIndex().search(make(2), 1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ExactIndex("cosinus"), "`metric` must be one of"),
        (lambda: ExactIndex(block_bytes=0), "`block_bytes` must be a positive"),
        (lambda: ExactIndex().build(make(2), [1, 1]), "must be unique"),
        (lambda: ExactIndex().build(make(2), [1.5, 2]), "integers or strings"),
        (lambda: ExactIndex().build([["a", "b"]]), "must hold real numbers"),
        (lambda: ExactIndex("dot").build([[1e25, 0]]), "too large"),
        (lambda: ExactIndex().build(make(2)).search(make(2), 0), "`k` must"),
        (
            lambda: ExactIndex().build(make(2)).search(make(2, dim=3), 1),
            "`queries` must have the shape .rows, 7.",
        ),
        (
            lambda: (
                ExactIndex()
                .build(make(2))
                .search(make(2), 1, exclude_ids=["a", "b"])
            ),
            "both be integers or both strings",
        ),
        (
            lambda: (
                ExactIndex()
                .build(make(2))
                .positive_ranks(make(2), [0, 0], [0, 0, 0])
            ),
            "`reference_labels` must have the shape",
        ),
    ],
)
def test_refuses(call, message):
    with pytest.raises(UsageError, match=message):
        call()


def test_a_stored_index_with_repeated_ids_is_refused(tmp_path):
    index = ExactIndex("cosine").build(np.eye(4), ids=list("abcd"))
    path = tmp_path / "index.npz"
    index.save(path)
    with np.load(path) as stored:
        arrays = {**stored, "ids": np.array(list("abca"))}
    np.savez(path, **arrays)
    with pytest.raises(UsageError, match="`ids` must be unique.*'a'"):
        ExactIndex.load(path)
