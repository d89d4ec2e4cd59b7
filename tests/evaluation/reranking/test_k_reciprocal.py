import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    ExactIndex,
    KReciprocal,
    evaluate,
    evaluate_lists,
    k_reciprocal,
)
from keras_dml.evaluation.reranking import reciprocal_sets


def make(rows, seed=0, classes=5):
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=rows)
    centers = np.random.default_rng(9).standard_normal((classes, 6))
    embeddings = centers[labels] + 0.8 * generator.standard_normal((rows, 6))
    return embeddings.astype("float32"), labels


def naive(queries, references, k1, k2, weight, candidates, own, metric):
    """The paper's equations with sets and loops; `own` are rows or -1."""
    everything = [*references.astype("float64")]
    rows = []
    for query, row in zip(queries.astype("float64"), own, strict=True):
        rows.append(row if row >= 0 else len(everything))
        if row < 0:
            everything.append(query)
    everything = np.array(everything)
    if metric == "cosine":
        everything /= np.linalg.norm(everything, axis=1, keepdims=True)
    squared = np.sum((everything[:, None] - everything) ** 2, axis=2)
    distances = squared / squared.mean()
    images = range(len(everything))
    near = [
        sorted(images, key=lambda j, i=i: (j != i, distances[i, j], j))
        for i in images
    ]

    def mutual(i, k):
        return {j for j in near[i][: k + 1] if i in near[j][: k + 1]}

    sets = np.zeros_like(distances)
    for i in images:
        found = mutual(i, k1)
        for j in mutual(i, k1):
            half = mutual(j, round(k1 / 2))
            if len(half & mutual(i, k1)) >= 2 / 3 * len(half):
                found |= half
        for j in found:
            sets[i, j] = np.exp(-distances[i, j])
        sets[i] /= sets[i].sum()
    sets = np.array([sets[near[i][:k2]].mean(axis=0) for i in images])
    lists, scores = [], []
    for row, itself in zip(rows, own, strict=True):
        others = [j for j in range(len(references)) if j != itself]
        others.sort(key=lambda j, row=row: (distances[row, j], j))
        final = []
        for j in others[:candidates]:
            minima = np.minimum(sets[row], sets[j]).sum()
            maxima = np.maximum(sets[row], sets[j]).sum()
            jaccard = 1 - minima / maxima
            final.append(
                ((1 - weight) * jaccard + weight * distances[row, j], j)
            )
        final.sort(key=lambda pair: round(pair[0], 9))
        lists.append([j for _, j in final])
        scores.append([-distance for distance, _ in final])
    return np.array(lists), np.array(scores)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize(
    "k1, k2, weight, candidates",
    [(6, 3, 0.3, 12), (7, 1, 0.0, 30), (4, 9, 0.5, 5), (1, 1, 0.3, 10)],
)
@pytest.mark.parametrize("own_gallery", [True, False])
def test_against_loops(k1, k2, weight, candidates, own_gallery, metric):
    references, _ = make(50)
    if own_gallery:
        queries, own = references, np.arange(50)
    else:
        queries, own = make(15, seed=1)[0], np.full(15, -1)
    ids = np.random.default_rng(2).permutation(1000)[:50]
    found, scores = k_reciprocal(
        queries,
        references,
        k1,
        k2,
        weight,
        candidates,
        query_ids=ids if own_gallery else None,
        reference_ids=ids,
        metric=metric,
    )
    lists, expected = naive(
        queries, references, k1, k2, weight, candidates, own, metric
    )
    np.testing.assert_allclose(scores, expected, atol=1e-4)
    assert np.mean(found == ids[lists]) > 0.99


@pytest.mark.parametrize("pairs", [1, 500])
def test_blocks_do_not_change_the_lists(pairs, monkeypatch):
    embeddings, _ = make(60)
    ids = np.arange(60)
    expected = k_reciprocal(
        embeddings, embeddings, query_ids=ids, reference_ids=ids
    )
    monkeypatch.setattr(reciprocal_sets, "PAIRS_AT_A_TIME", pairs)
    actual = k_reciprocal(
        embeddings, embeddings, query_ids=ids, reference_ids=ids
    )
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_allclose(actual[1], expected[1], rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_more_neighbors_than_images(rows):
    references, _ = make(rows)
    queries, _ = make(3, seed=1)
    found, scores = k_reciprocal(queries, references)
    assert found.shape == scores.shape == (3, rows)
    assert np.isfinite(scores).all()
    assert (np.sort(found, axis=1) == np.arange(rows)).all()


@pytest.mark.parametrize("weight", [0, 0.3, 1])
def test_the_query_itself_comes_last(weight):
    embeddings, _ = make(12)
    ids = np.arange(12)
    found, scores = k_reciprocal(
        embeddings,
        embeddings,
        original_weight=weight,
        query_ids=ids,
        reference_ids=ids,
    )
    np.testing.assert_array_equal(found[:, -1], ids)
    assert (scores[:, -1] == -np.inf).all()


def test_equal_images_stay_in_the_order_of_their_ids():
    ids = np.arange(9)
    ones = np.ones((9, 3))
    found, _ = k_reciprocal(ones, ones, query_ids=ids, reference_ids=ids)
    for query, row in enumerate(found):
        np.testing.assert_array_equal(row[:-1], np.delete(ids, query))


def test_float16_and_strided_embeddings():
    references, _ = make(30)
    references = references.astype("float16")
    wide = np.zeros((60, 12), "float16")
    wide[::2, ::2] = references
    plain = references.astype("float32")
    for actual, expected in zip(
        k_reciprocal(wide[::2, ::2], wide[::2, ::2]),
        k_reciprocal(plain, plain),
        strict=True,
    ):
        np.testing.assert_array_equal(actual, expected)


def test_the_original_order_alone():
    references, _ = make(40)
    queries, _ = make(10, seed=1)
    found, _ = k_reciprocal(queries, references, original_weight=1.0)
    expected, _ = ExactIndex().build(references).search(queries, 40)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("candidates", [15, 60])
@pytest.mark.parametrize("own_gallery", [True, False])
def test_an_evaluation_orders_the_candidates_anew(candidates, own_gallery):
    references, gallery = make(60)
    method = KReciprocal(k1=6, k2=3, candidates=candidates)
    queries, labels, ids = references, gallery, np.arange(60)
    names, searched = {"query_ids": ids, "reference_ids": ids}, None
    if not own_gallery:
        queries, labels = make(20, seed=1)
        names, searched = {}, (references, gallery)
    result = evaluate(
        queries, labels, references=searched, k=(1, 4, "map"), rerank=method
    ).exact
    lists, _ = k_reciprocal(queries, references, 6, 3, 0.3, candidates, **names)
    listed = evaluate_lists(
        lists,
        labels,
        ids,
        gallery,
        ids if own_gallery else None,
        ["recall@1", "recall@4"],
    )
    for name, value in listed.metrics.items():
        assert result.reranked.metrics[name] == value
    assert result.reranked.metrics != result.metrics
    # Beyond the candidates nothing moves.
    name = "recall@1"
    beyond = result.per_query["mrr"] < 1 / candidates
    np.testing.assert_array_equal(
        result.reranked.per_query["mrr"][beyond],
        result.per_query["mrr"][beyond],
    )
    assert result.reranked.num_lone == result.num_lone


def test_mutual_neighbors_help():
    embeddings, labels = make(400)
    result = evaluate(embeddings, labels, rerank="k_reciprocal").exact
    assert result.reranked.metrics["map@r"] > result.metrics["map@r"] + 0.02


def test_several_labels():
    embeddings, labels = make(60)
    sets = [{label} for label in labels.tolist()]
    method = KReciprocal(candidates=20)
    several = evaluate(embeddings, sets, rerank=method).exact
    single = evaluate(embeddings, labels, rerank=method).exact
    assert several.reranked.metrics == single.reranked.metrics


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"references": np.full((3, 6), np.nan)}, "first is row 0"),
        ({"references": np.ones((3, 5))}, "shape .rows, 5."),
        ({"k1": 0}, "`k1` must be a positive"),
        ({"k2": 0}, "`k2` must be a positive"),
        ({"candidates": 0}, "`candidates` must be a positive"),
        ({"original_weight": 1.5}, "`original_weight` must be a number in"),
        ({"metric": "dot"}, "`metric` must be one of 'cosine', 'euclidean'"),
    ],
)
def test_refuses(arguments, message):
    rows, _ = make(20)
    with pytest.raises(UsageError, match=message):
        k_reciprocal(rows, **{"references": rows, **arguments})
