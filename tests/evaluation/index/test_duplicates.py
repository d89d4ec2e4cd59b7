import numpy as np

from keras_dml.evaluation.index.spaces import duplicate_rows


def test_rows_equal_to_an_earlier_row():
    rows = np.random.default_rng(0).standard_normal((50, 4)).astype("f4")
    rows[[9, 30, 49]] = rows[3]
    rows[20] = rows[10]
    found, originals = duplicate_rows(rows)
    np.testing.assert_array_equal(found, [9, 20, 30, 49])
    np.testing.assert_array_equal(originals, [3, 10, 3, 3])


def test_negative_zero_equals_zero():
    found, originals = duplicate_rows(np.array([[0.0], [-0.0]], "float32"))
    assert (found, originals) == ([1], [0])


def test_permuted_and_distinct_rows_are_no_duplicates():
    rows = np.array([[1, 2], [2, 1], [1, 1], [3, 0]], "float32")
    assert len(duplicate_rows(rows)[0]) == 0
