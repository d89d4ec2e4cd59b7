import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation.labels import Relevance, as_label_sets, is_multi_label


def random_sets(rows, seed):
    generator = np.random.default_rng(seed)
    return [
        set(generator.choice(8, generator.integers(4), replace=False).tolist())
        for _ in range(rows)
    ]


def naive(queries, references):
    return np.array([[bool(q & r) for r in references] for q in queries])


@pytest.mark.parametrize("form", ["sets", "matrix", "single", "strings"])
def test_every_form_against_loops(form):
    queries, references = random_sets(12, 0), random_sets(19, 1)
    expected = naive(queries, references)
    if form == "matrix":
        queries, references = (
            np.array([[label in row for label in range(8)] for row in sets])
            for sets in (queries, references)
        )
    elif form != "sets":
        queries, references = np.arange(12) % 5, np.arange(19) % 7
        expected = queries[:, None] == references
        if form == "strings":
            queries, references = queries.astype(str), references.astype(str)
    relevance = Relevance.of(queries, 12, references, 19)
    np.testing.assert_array_equal(relevance.block(0, 12), expected)
    np.testing.assert_array_equal(relevance.block(3, 5), expected[3:5])
    for query in range(12):
        np.testing.assert_array_equal(
            relevance.rows(query), np.flatnonzero(expected[query])
        )
    columns = np.random.default_rng(2).integers(19, size=(12, 5))
    np.testing.assert_array_equal(
        relevance.among(columns), np.take_along_axis(expected, columns, 1)
    )
    own = np.arange(12) - 3
    own = np.where(own < 0, -1, own)
    counts = expected.sum(axis=1)
    counts -= expected[np.arange(12), own] & (own >= 0)
    np.testing.assert_array_equal(relevance.counts(own), counts)


def test_taken_references_change_their_rows():
    queries, references = random_sets(12, 0), random_sets(19, 1)
    order = np.random.default_rng(3).permutation(19)
    taken = Relevance.of(queries, 12, references, 19).take(order)
    np.testing.assert_array_equal(
        taken.block(0, 12), naive(queries, references)[:, order]
    )
    assert all((np.diff(taken.rows(query)) > 0).all() for query in range(12))


def test_labels_of_rows():
    sets = as_label_sets([{"b", "a"}, set(), {"c"}], 3, "labels")
    assert sets.values.tolist() == ["a", "b", "c"]
    assert sets.owners.tolist() == [0, 0, 2]
    assert as_label_sets([4, 4], 2, "labels").owners.tolist() == [0, 1]


@pytest.mark.parametrize(
    "labels, several",
    [
        ([1, 2], False),
        (["a", "b"], False),
        (np.array([True, False]), False),
        ([{1}, {2}], True),
        ([frozenset({1})], True),
        (np.eye(2), True),
        ([], False),
    ],
)
def test_what_is_multi_label(labels, several):
    assert is_multi_label(labels) == several


def test_booleans_are_not_searched_for_other_numbers(monkeypatch):
    """That took a copy of a matrix of many images and classes, and seconds."""
    matrix = np.eye(3, dtype=bool)
    monkeypatch.setattr(np, "isin", lambda *_: pytest.fail("searched"))
    assert as_label_sets(matrix, 3, "labels").values.tolist() == [0, 1, 2]


def test_labels_in_one_column_are_no_label_sets():
    """Class 0 of labels such as Keras takes counted as having no label."""
    with pytest.raises(UsageError, match=r"of shape \(rows,\).*reshape"):
        as_label_sets([[0], [1], [0]], 3, "labels")
    one_class = np.array([[True], [False]])
    assert as_label_sets(one_class, 2, "labels").values.tolist() == [0]
