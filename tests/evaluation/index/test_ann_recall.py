import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex, evaluate_retrieval
from keras_dml.evaluation.index import ann_recall as ann_recall_module
from keras_dml.evaluation.index.ann_recall import (
    ann_recall_at_k,
    evaluate_index,
)
from keras_dml.evaluation.index.scann import ScannIndex


def clusters(rows, seed=0):
    centers = np.random.default_rng(0).standard_normal((50, 8))
    generator = np.random.default_rng(seed)
    labels = generator.integers(50, size=rows)
    noise = 0.6 * generator.standard_normal((rows, 8))
    return (centers[labels] + noise).astype("float32"), labels


class Forgetful:
    """An exact index that passes over some of its references."""

    exact = False

    def __init__(self, whole, forgotten):
        self._whole, self._forgotten = whole, forgotten
        self.ids = whole.ids

    def search(self, queries, k, exclude_ids=None):
        ids, scores = self._whole.search(queries, len(self.ids), exclude_ids)
        kept = [
            [
                (found, score)
                for found, score in zip(*row, strict=True)
                if found not in self._forgotten
            ][:k]
            for row in zip(ids, scores, strict=True)
        ]
        return (
            np.array([[found for found, _ in row] for row in kept]),
            np.array([[score for _, score in row] for row in kept], "f4"),
        )


@pytest.mark.parametrize("per_block", [1, 100, 2**20])
@pytest.mark.parametrize("k", [1, 5, 30])
@pytest.mark.parametrize("excluded", [False, True])
def test_recall_against_loops(k, excluded, per_block, monkeypatch):
    monkeypatch.setattr(ann_recall_module, "NEIGHBORS_PER_BLOCK", per_block)
    references, _ = clusters(120)
    ids = np.random.default_rng(1).permutation(500)[:120]
    whole = ExactIndex().build(references, ids)
    index = Forgetful(whole, set(ids[:40].tolist()))
    own = ids[:60] if excluded else None
    found, _ = index.search(references[:60], k, own)
    nearest, _ = whole.search(references[:60], k, own)
    pairs = zip(found.tolist(), nearest.tolist(), strict=True)
    expected = np.mean([len({*a} & {*b}) / k for a, b in pairs])
    recall = ann_recall_at_k(index, references[:60], k, whole, own)
    np.testing.assert_allclose(recall, expected)
    assert 0 < recall < 1


def test_an_exact_index_finds_all():
    references, _ = clusters(120)
    index = ExactIndex().build(references)
    for k in (1, 7, 119, 120, 500):
        assert ann_recall_at_k(index, references, k) == 1.0
        own = np.arange(120)
        assert ann_recall_at_k(index, references, k, exclude_ids=own) == 1.0


def test_any_of_equally_near_references_counts():
    references, _ = clusters(60)
    references[:6] = references[0]
    whole = ExactIndex().build(references)
    index = Forgetful(whole, {0, 1, 2})
    assert ann_recall_at_k(index, references[:1], 3, whole) == 1.0
    assert ann_recall_at_k(index, references[:1], 6, whole) == 0.5


def test_one_reference_that_is_the_query_itself():
    index = ExactIndex().build([[1.0, 0.0]])
    assert ann_recall_at_k(index, [[1.0, 0.0]], 1, exclude_ids=[0]) == 1.0


@pytest.mark.parametrize("several_labels", [False, True])
def test_metrics_are_those_of_exact_evaluation(several_labels):
    references, labels = clusters(300)
    labels = [{label} for label in labels] if several_labels else labels
    index = ExactIndex().build(references)
    found = evaluate_index(
        index, references, labels, labels, query_ids=np.arange(300), k=(1, 9)
    )
    expected = evaluate_retrieval(references, labels, k=(1, 9)).metrics
    assert found.metrics == found.exact_metrics
    assert set(found.metrics) == {
        "recall@1",
        "recall@9",
        "r_precision",
        "map@r",
    }
    for name, value in found.metrics.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-12)
    assert found.ann_recall == {"ann_recall@1": 1.0, "ann_recall@9": 1.0}
    assert set(found.differences.values()) == {0.0}


def test_blocks_and_ids_do_not_change_metrics(monkeypatch):
    (queries, labels), (references, gallery) = clusters(90, 1), clusters(300)
    ids = np.array([f"{row}" for row in range(300)])
    index = ExactIndex().build(references, ids)
    exact = ExactIndex().build(references[::-1], ids[::-1])
    whole = evaluate_index(index, queries, labels, gallery, exact=exact)
    monkeypatch.setattr(ann_recall_module, "NEIGHBORS_PER_BLOCK", 100)
    parts = evaluate_index(index, queries, labels, gallery)
    for name, value in whole.metrics.items():
        np.testing.assert_allclose(parts.metrics[name], value, rtol=1e-12)
        np.testing.assert_allclose(parts.exact_metrics[name], value, rtol=1e-12)


def test_tells_the_index_from_the_model():
    pytest.importorskip("scann")
    (queries, labels), (references, gallery) = clusters(200, 1), clusters(3000)
    index = ScannIndex(num_leaves=50, leaves_to_search=1).build(references)
    found = evaluate_index(index, queries, labels, gallery, k=(1, 10))
    expected = evaluate_retrieval(
        queries, labels, references, gallery, k=(1, 10)
    ).metrics
    for name, value in found.exact_metrics.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6)
    # Lists of the length of the evaluation, so those of `k` may differ.
    assert 0.3 < found.ann_recall["ann_recall@10"] < 0.99
    assert found.differences["map@r"] < 0


def test_further_metrics_have_lists_that_are_long_enough():
    references, labels = clusters(60)
    index = ExactIndex().build(references)
    extra = ["map@40", "precision@2", "map@r"]
    found = evaluate_index(
        index, references[:9], labels[:9], labels, k=1, extra_metrics=extra
    )
    expected = evaluate_retrieval(
        references[:9], labels[:9], references, labels, extra_metrics=extra
    ).metrics
    names = {"recall@1", "r_precision", *extra}
    assert found.metrics == {name: expected[name] for name in names}
    for extra in (["mrr"], [5]):
        with pytest.raises(UsageError, match="`reciprocal_rank`|Received: 5"):
            evaluate_index(
                index, references, labels, labels, k=1, extra_metrics=extra
            )


def test_lone_queries_are_left_out_of_metrics():
    references, labels = clusters(60)
    index = ExactIndex().build(references)
    asked = labels[:10].copy()
    asked[3] = 999
    found = evaluate_index(index, references[:10], asked, labels, k=1)
    kept = np.delete(np.arange(10), 3)
    others = evaluate_index(index, references[kept], asked[kept], labels, k=1)
    for name, value in others.metrics.items():
        np.testing.assert_allclose(found.metrics[name], value, rtol=1e-12)


@pytest.mark.parametrize(
    "use, message",
    [
        (
            lambda index: ann_recall_at_k(
                index, np.ones((1, 8)), 1, Forgetful(index, set())
            ),
            "must be an exact index",
        ),
        (
            lambda index: ann_recall_at_k(
                index, np.ones((1, 8)), 1, ExactIndex().build(np.ones((2, 8)))
            ),
            "must be of the references of `index`",
        ),
        (
            lambda index: evaluate_index(
                index, np.ones((2, 8)), [1, 1], np.zeros(60, int)
            ),
            "all without one",
        ),
        (
            lambda index: evaluate_index(
                index, np.ones((2, 8)), [1], np.zeros(60, int)
            ),
            "`query_labels` must have the shape",
        ),
    ],
)
def test_refuses(use, message):
    with pytest.raises(UsageError, match=message):
        use(ExactIndex().build(clusters(60)[0]))
