import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import (
    ExactIndex,
    IdentificationRates,
    identification_rates,
)


def make(rows, classes, seed):
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes, size=rows)
    centers = np.random.default_rng(99).standard_normal((9, 6))
    embeddings = centers[labels] + 0.6 * generator.standard_normal((rows, 6))
    return embeddings.astype("float32"), labels


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("score", [-2.0, 0.2, 0.8])
def test_rates_against_loops(normalize, with_ids, score):
    references, gallery = make(50, 6, 0)
    queries, labels = make(40, 9, 1)
    ids = np.random.default_rng(2).permutation(500)[:50]
    query_ids = np.arange(1000, 1040)
    if with_ids:
        queries[:10], labels[:10] = references[:10], gallery[:10]
        query_ids[:10] = ids[:10]
    index = ExactIndex("cosine" if normalize else "euclidean")
    index.build(references, ids)
    found, scores = index.search(
        queries, 50, exclude_ids=query_ids if with_ids else None
    )
    label_of = dict(zip(ids, gallery, strict=True))
    false_positives, false_negatives, unknown = 0, 0, 0
    for query, label in enumerate(labels):
        own = query_ids[query] if with_ids else None
        others = [label_of[i] for i in found[query] if i != own]
        answer = label_of[found[query, 0]]
        if scores[query, 0] < score:
            answer = None
        if label in others:
            false_negatives += answer != label
        else:
            unknown += 1
            false_positives += answer is not None
    rates = identification_rates(
        queries,
        labels,
        references,
        gallery,
        score,
        query_ids=query_ids if with_ids else None,
        reference_ids=ids if with_ids else None,
        normalize=normalize,
    )
    assert 0 < unknown < 40
    assert rates == IdentificationRates(
        false_positives / unknown,
        false_negatives / (40 - unknown),
        unknown,
        40 - unknown,
        score,
    )


def test_queries_of_one_kind():
    rates = identification_rates([[1.0]], [0], [[1.0]], [0], 0.5)
    assert np.isnan(rates.fpir) and rates.fnir == 0
    rates = identification_rates([[1.0]], [7], [[1.0]], [0], 0.5)
    assert np.isnan(rates.fnir) and rates.fpir == 1


def test_ties_are_wrong():
    rates = identification_rates([[1.0]], [0], [[1.0], [1.0]], [0, 1], 0.5)
    assert rates.fnir == 1.0


def test_refuses():
    for score in (np.nan, "x", None, [0.5]):
        with pytest.raises(UsageError, match="`score` must be a number"):
            identification_rates([[1.0]], [0], [[1.0]], [0], score)
    with pytest.raises(UsageError, match="`normalize` must be True or False"):
        identification_rates([[1.0]], [0], [[1.0]], [0], 0.5, normalize="no")
    with pytest.raises(UsageError, match="shape .rows, 1."):
        identification_rates([[1.0]], [0], [[1.0, 2.0]], [0], 0.5)
