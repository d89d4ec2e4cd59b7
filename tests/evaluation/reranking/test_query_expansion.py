import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    AlphaQueryExpansion,
    ExactIndex,
    evaluate,
    evaluate_retrieval,
    expand_queries,
)
from keras_dml.evaluation.reranking import query_expansion


def make(rows, seed=0, classes=5):
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=rows)
    centers = np.random.default_rng(9).standard_normal((classes, 6))
    embeddings = centers[labels] + generator.standard_normal((rows, 6))
    return embeddings.astype("float32"), labels


def naive(queries, references, k, alpha, own=None):
    unit = [r / np.linalg.norm(r) for r in references.astype("float64")]
    expanded = []
    for i, query in enumerate(queries.astype("float64")):
        query = query / np.linalg.norm(query)
        others = [j for j in range(len(unit)) if own is None or j != own[i]]
        others.sort(key=lambda j, query=query: -(query @ unit[j]))
        total = query.copy()
        for j in others[:k]:
            total += max(0.0, query @ unit[j]) ** alpha * unit[j]
        expanded.append(total / np.linalg.norm(total))
    return np.array(expanded)


@pytest.mark.parametrize("k", [1, 4, 29, 30, 100])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("own", [False, True])
def test_against_loops(k, alpha, own, monkeypatch):
    monkeypatch.setattr(query_expansion, "QUERIES_AT_A_TIME", 11)
    references, _ = make(30)
    queries = references if own else make(17, seed=1)[0]
    ids = np.random.default_rng(2).permutation(30)
    actual = expand_queries(
        queries,
        references,
        k,
        alpha,
        query_ids=ids if own else None,
        reference_ids=ids,
    )
    expected = naive(queries, references, k, alpha, range(30) if own else None)
    np.testing.assert_allclose(actual, expected, atol=1e-5)
    assert actual.dtype == "float32"


def test_another_index_may_find_the_neighbors():
    references, _ = make(30)
    queries, _ = make(5, seed=1)
    ids = [f"image-{i}" for i in range(30)]
    index = ExactIndex().build(references, ids)
    np.testing.assert_array_equal(
        expand_queries(queries, references, reference_ids=ids, index=index),
        expand_queries(queries, references),
    )


@pytest.mark.parametrize("own_gallery", [True, False])
def test_an_evaluation_searches_with_the_expanded_queries(own_gallery):
    references, gallery = make(60)
    method = AlphaQueryExpansion(k=3, alpha=2.0)
    ids = np.arange(60)
    if own_gallery:
        result = evaluate(references, gallery, rerank=method).exact
        expanded = expand_queries(
            references, references, 3, 2.0, query_ids=ids, reference_ids=ids
        )
        labels, names = gallery, {"query_ids": ids, "reference_ids": ids}
    else:
        queries, labels = make(20, seed=1)
        result = evaluate(
            queries, labels, references=(references, gallery), rerank=method
        ).exact
        expanded, names = expand_queries(queries, references, 3, 2.0), {}
    expected = evaluate_retrieval(
        expanded, labels, references, gallery, **names
    )
    assert result.reranked.metrics == expected.metrics
    assert result.reranked.metrics != result.metrics
    assert result.reranked.reranked is None


@pytest.mark.parametrize("k", [1, 40])
def test_float16_and_strided_embeddings(k):
    references, _ = make(30)
    references = references.astype("float16")
    wide = np.zeros((60, 12), "float16")
    wide[::2, ::2] = references
    plain = references.astype("float32")
    np.testing.assert_array_equal(
        expand_queries(wide[::2, ::2], wide[::2, ::2], k),
        expand_queries(plain, plain, k),
    )


def test_neighbors_help_noisy_queries():
    references, gallery = make(400)
    queries, labels = make(200, seed=1)
    result = evaluate(
        queries,
        labels,
        references=(references, gallery),
        rerank="query_expansion",
    ).exact
    assert result.reranked.metrics["map@r"] > result.metrics["map@r"] + 0.02


def test_refuses():
    rows, labels = make(20)
    with pytest.raises(UsageError, match="`alpha` must be a number of at"):
        expand_queries(rows, rows, alpha=-1)
    with pytest.raises(UsageError, match="`k` must be a positive"):
        expand_queries(rows, rows, k=0)
    with pytest.raises(UsageError, match=r"`query_ids` must have .*\(20,\)"):
        expand_queries(
            rows,
            rows,
            query_ids=np.arange(22),
            reference_ids=np.arange(20),
        )
    with pytest.raises(UsageError, match="by their cosine"):
        evaluate(rows, labels, normalize=False, rerank="query_expansion")
