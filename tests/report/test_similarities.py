import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet
from keras_dml.report import charts
from keras_dml.report.charts import similarity_shares

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(5), 7)
ROWS = RNG.normal(size=(35, 4)) + 3 * RNG.normal(size=(5, 4))[LABELS]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("rows_at_a_time", [4, 256])
def test_shares_are_those_of_all_pairs(monkeypatch, normalize, rows_at_a_time):
    monkeypatch.setattr(charts, "ROWS_AT_A_TIME", rows_at_a_time)
    edges, positive, negative = similarity_shares(
        EmbeddingSet(ROWS, LABELS), normalize
    )
    values = {True: [], False: []}
    for i in range(35):
        for j in range(35):
            if i != j:
                one, other = ROWS[i], ROWS[j]
                value = -np.linalg.norm(one - other)
                if normalize:
                    value = one @ other / np.linalg.norm(one)
                    value /= np.linalg.norm(other)
                values[bool(LABELS[i] == LABELS[j])].append(value)
    for shares, expected in ((positive, True), (negative, False)):
        counts = np.histogram(values[expected], edges)[0]
        np.testing.assert_allclose(
            shares, counts / len(values[expected]), atol=2e-3
        )
        assert shares.sum() == pytest.approx(1)


def test_one_class_has_no_pair_of_two():
    _, positive, negative = similarity_shares(
        EmbeddingSet(ROWS, np.zeros(35, int)), True
    )
    assert positive.sum() == pytest.approx(1)
    assert negative.sum() == 0


def test_equal_rows_far_from_the_origin():
    rows = EmbeddingSet(np.full((4, 2), 1e3), [0, 0, 1, 1])
    edges, positive, negative = similarity_shares(rows, normalize=False)
    assert edges[0] < 0
    assert positive[-1] == negative[-1] == 1
