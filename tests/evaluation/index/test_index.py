"""What every index promises, of all of them."""

import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex, Index
from keras_dml.evaluation.index.scann import ScannIndex
from tests.evaluation import naive

ROWS, DIM = 60, 6
METRICS = ("cosine", "euclidean", "dot")


def make(rows, seed=0):
    generator = np.random.default_rng(seed)
    return generator.standard_normal((rows, DIM)).astype("float32")


def exact(metric="cosine"):
    return ExactIndex(metric)


def scann(shape):
    pytest.importorskip("scann")

    def construct(metric="cosine"):
        # Looking into all leaves and scoring all candidates again is exact.
        leaves = ROWS if shape == "tree" else None
        return ScannIndex(
            metric, shape, leaves_to_search=leaves, reorder=2 * ROWS
        )

    return construct


@pytest.fixture(params=["exact", "brute_force", "hashing", "tree"])
def construct(request):
    return exact if request.param == "exact" else scann(request.param)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "strided"])
def test_neighbors_by_id_equal_those_of_loops(construct, metric, dtype):
    references, queries = make(ROWS), make(20, seed=1)
    if dtype == "strided":
        # Every second column of every second row, in Fortran's order.
        wide = np.zeros((2 * ROWS, 2 * DIM), "float32", order="F")
        wide[::2, ::2] = references
        references = wide[::2, ::2]
    else:
        references, queries = references.astype(dtype), queries.astype(dtype)
    ids = np.random.default_rng(2).permutation(1000)[:ROWS]
    expected = ids[naive.neighbors(queries, references, ids, None, metric)]
    index = construct(metric).build(references, ids)
    assert isinstance(index, Index)
    for k in (1, 2, 7, ROWS - 1, ROWS, ROWS + 9):
        for batch in (1, 3, 20):
            found, scores = index.search(queries[:batch], k)
            np.testing.assert_array_equal(found, expected[:batch, :k])
            assert found.shape == scores.shape == (batch, min(k, ROWS))
            assert scores.dtype == "float32" and np.isfinite(scores).all()
            assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_exact_search(construct, metric):
    references, queries = make(ROWS) + 3, make(9, seed=1) + 3
    _, scores = construct(metric).build(references).search(queries, ROWS)
    _, expected = ExactIndex(metric).build(references).search(queries, ROWS)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 10])
def test_few_references(construct, rows):
    references = make(rows)
    index = construct().build(references, np.arange(rows)[::-1])
    found, _ = index.search(references, 20)
    np.testing.assert_array_equal(found[:, 0], np.arange(rows)[::-1])
    np.testing.assert_array_equal(
        np.sort(found), np.tile(np.arange(rows), (rows, 1))
    )


def test_equal_references_come_by_id(construct):
    references = make(ROWS)
    same = np.arange(0, 40, 2)
    references[same] = references[0]
    ids = np.random.default_rng(2).permutation(ROWS)
    index = construct().build(references, ids)
    found, scores = index.search(references[:1], len(same))
    np.testing.assert_array_equal(found[0], np.sort(ids[same]))
    assert (scores == scores[0, 0]).all()


@pytest.mark.parametrize("strings", [False, True])
def test_excluded_references(construct, strings):
    references = make(ROWS)
    ids = np.arange(ROWS) + 100
    ids = ids.astype(str) if strings else ids
    index = construct().build(references, ids)
    everything, _ = index.search(references, ROWS)
    np.testing.assert_array_equal(everything[:, 0], ids)
    for k in (1, 5, ROWS - 1):
        found, scores = index.search(references, k, exclude_ids=ids)
        np.testing.assert_array_equal(found, everything[:, 1 : k + 1])
        assert np.isfinite(scores).all()
    found, scores = index.search(references, ROWS, exclude_ids=ids)
    np.testing.assert_array_equal(found[:, -1], ids)
    assert np.isneginf(scores[:, -1]).all()
    assert np.isfinite(scores[:, :-1]).all()
    unknown = ids[:5].copy()
    unknown[:] = "999" if strings else 999
    found, _ = index.search(references[:5], 3, exclude_ids=unknown)
    np.testing.assert_array_equal(found, everything[:5, :3])


@pytest.mark.parametrize("metric", METRICS)
def test_adding_and_removing_equal_building(construct, metric):
    embeddings, queries = make(ROWS), make(9, seed=1)
    ids = np.array([f"{number:03}" for number in range(ROWS)])
    ids = np.random.default_rng(2).permutation(ids)
    index = construct(metric).build(embeddings[:40], ids[:40])
    index.remove(ids[[39, 3, 38]]).add(embeddings[40:], ids[40:])
    index.remove([ids[59]]).remove(ids[[0, 41]])
    index.add(embeddings[3:4], ids[3:4])
    order = np.delete(np.arange(ROWS), [0, 3, 38, 39, 41, 59])
    order = np.append(order, 3)
    np.testing.assert_array_equal(index.ids, ids[order])
    expected = ids[order][
        naive.neighbors(queries, embeddings[order], ids[order], None, metric)
    ]
    for k in (1, 7, len(order)):
        found, _ = index.search(queries, k)
        np.testing.assert_array_equal(found, expected[:, :k])


@pytest.mark.parametrize("change", ["add", "remove", "nothing"])
def test_what_is_saved_is_loaded(construct, change, tmp_path):
    embeddings, queries = make(ROWS), make(9, seed=1)
    ids = np.random.default_rng(2).permutation(ROWS)
    index = construct("euclidean").build(embeddings[:50] + 9, ids[:50])
    index.weights_hash = "abc"
    path = tmp_path / "deep" / "index"
    index.save(path)
    if change == "add":
        index.add(embeddings[50:] + 9, ids[50:]).save(path)
    if change == "remove":
        index.remove(ids[5:20]).save(path)
    loaded = type(index).load(path, weights_hash="abc")
    assert loaded.metric == "euclidean" and loaded.weights_hash == "abc"
    np.testing.assert_array_equal(loaded.ids, index.ids)
    for k in (4, ROWS):
        found, scores = index.search(queries + 9, k)
        loaded_found, loaded_scores = loaded.search(queries + 9, k)
        np.testing.assert_array_equal(loaded_found, found)
        # A layout of leaves after removing may round the last bit otherwise.
        np.testing.assert_allclose(loaded_scores, scores, rtol=1e-6)
    # A loaded index goes on as the saved one does.
    loaded.add(embeddings[:1] + 9.5, [777]).remove(ids[20:22])
    index.add(embeddings[:1] + 9.5, [777]).remove(ids[20:22])
    np.testing.assert_array_equal(
        loaded.search(queries + 9, ROWS)[0], index.search(queries + 9, ROWS)[0]
    )
    assert len(list(path.parent.iterdir())) == 1
    with pytest.raises(UsageError, match=r"\(abc\). Received: xyz"):
        type(index).load(path, weights_hash="xyz")


@pytest.mark.parametrize("metric", METRICS)
def test_the_exact_index_of_the_same_references(construct, metric):
    embeddings = make(ROWS) + 5
    ids = np.random.default_rng(2).permutation(ROWS)
    index = construct(metric).build(embeddings[:40], ids[:40])
    index.remove(ids[:3]).add(embeddings[40:], ids[40:])
    twin = index.to_exact()
    assert twin.exact
    np.testing.assert_array_equal(twin.ids, index.ids)
    expected = ExactIndex(metric).build(embeddings[3:], ids[3:])
    for a, b in zip(
        twin.search(embeddings, 20),
        expected.search(embeddings, 20),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_zero_rows_score_zero(construct):
    references = np.zeros((ROWS, DIM), "float32")
    index = construct().build(references)
    found, scores = index.search(references[:2], 3)
    assert found.shape == (2, 3)
    assert (scores == 0).all() and not np.signbit(scores).any()


def test_the_references_may_change_after_build(construct):
    references = make(ROWS)
    index = construct().build(references)
    expected = index.search(make(4, seed=1), 5)
    references[:] = 0
    for a, b in zip(index.search(make(4, seed=1), 5), expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_removing_nothing(construct):
    index = construct().build(make(5), list("abcde"))
    assert index.remove([]) is index
    np.testing.assert_array_equal(index.ids, list("abcde"))


def with_nan(rows, row):
    array = make(rows)
    array[row, 2] = np.nan
    return array


@pytest.mark.parametrize(
    "use, message",
    [
        (lambda index: index.build(make(0)), "at least one row"),
        (lambda index: index.build(with_nan(9, 4)), "first is row 4"),
        (lambda index: index.search(with_nan(9, 7), 1), "first is row 7"),
        (lambda index: index.search(make(0), 1), "at least one row"),
        (lambda index: index.search(make(2), 0), "`k` must be a positive"),
        (lambda index: index.search(make(2)[:, :3], 1), "shape .rows, 6."),
        (lambda index: index.search(make(2), 1, ["a", "b"]), "both be integer"),
        (lambda index: index.search(make(2), 1, [1]), "`exclude_ids` must"),
        (lambda index: index.build(make(2), [1, 1]), "must be unique"),
        (lambda index: index.add(with_nan(9, 4), range(90, 99)), "row 4"),
        (lambda index: index.add(make(1), None), "must be given"),
        (lambda index: index.add(make(1), [7]), "must be new"),
        (lambda index: index.add(make(2), [70, 70]), "must be unique"),
        (lambda index: index.add(make(1), ["a"]), "both be integers"),
        (lambda index: index.add(make(1)[:, :3], [70]), "shape .rows, 6."),
        (lambda index: index.remove([7, 99]), r"must be in the index.*\[99\]"),
        (lambda index: index.remove(["a"]), "both be integers"),
        (lambda index: index.remove(np.arange(ROWS)), "must leave a refer"),
    ],
)
def test_refuses_and_stays_as_it_was(construct, use, message):
    index = construct().build(make(ROWS))
    expected = index.search(make(5, seed=1), 9)
    with pytest.raises(UsageError, match=message):
        use(index)
    np.testing.assert_array_equal(index.ids, np.arange(ROWS))
    for a, b in zip(index.search(make(5, seed=1), 9), expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "use",
    [
        lambda index: index.search(make(1), 1),
        lambda index: index.add(make(1), [1]),
        lambda index: index.remove([1]),
        lambda index: index.ids,
        lambda index: index.save("index"),
    ],
)
def test_refuses_use_before_build(construct, use):
    with pytest.raises(UsageError, match="must be built before"):
        use(construct())
