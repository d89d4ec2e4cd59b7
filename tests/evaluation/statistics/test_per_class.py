import json

import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation import ClassTable, class_table

VALUES = {
    "recall@1": np.array([1.0, 0.0, np.nan, 1.0, 0.0, np.nan]),
    "map@r": np.array([0.5, 0.1, np.nan, 0.7, 0.0, np.nan]),
}
LABELS = np.array([3, 1, 3, 3, 1, 2])


def test_worked_example():
    table = class_table(VALUES, LABELS)
    assert isinstance(table, ClassTable)
    np.testing.assert_array_equal(table.labels, [1, 2, 3])
    np.testing.assert_array_equal(table.num_queries, [2, 1, 3])
    np.testing.assert_array_equal(table.num_lone, [0, 1, 1])
    np.testing.assert_allclose(table.means["recall@1"], [0, np.nan, 1])
    np.testing.assert_allclose(table.means["map@r"], [0.05, np.nan, 0.6])


def test_the_worst_class_comes_first_and_nan_last():
    table = class_table(VALUES, LABELS)
    assert table.worst("map@r") == (1, pytest.approx(0.05))
    ordered = table.sorted_by("map@r")
    assert ordered.labels.tolist() == [1, 3, 2]
    assert ordered.num_queries.tolist() == [2, 3, 1]
    assert ordered.num_lone.tolist() == [0, 1, 1]
    np.testing.assert_allclose(ordered.means["recall@1"], [0, 1, np.nan])


def test_rows_are_plain():
    rows = class_table(VALUES, LABELS.astype(str)).rows()
    assert json.loads(json.dumps(rows)) == rows
    assert rows[1] == {
        "label": "2",
        "num_queries": 1,
        "num_lone": 1,
        "recall@1": None,
        "map@r": None,
    }


@pytest.mark.parametrize("rows, classes", [(200, 30), (5, 1)])
def test_means_against_loops(rows, classes):
    generator = np.random.default_rng(0)
    labels = generator.integers(classes, size=rows)
    values = generator.random(rows)
    values[::7] = np.nan
    table = class_table({"mrr": values}, labels)
    for label, value in zip(table.labels, table.means["mrr"], strict=True):
        expected = np.nanmean(values[labels == label])
        assert value == pytest.approx(expected)
    assert table.num_queries.sum() == rows


def test_a_query_counts_in_each_of_its_classes():
    labels = [{"a", "b"}, {"b"}, set()]
    table = class_table({"mrr": np.array([1.0, 0.0, np.nan])}, labels)
    assert table.labels.tolist() == ["a", "b"]
    assert table.num_queries.tolist() == [1, 2]
    assert table.means["mrr"].tolist() == [1.0, 0.5]


def test_refuses():
    table = class_table(VALUES, LABELS)
    with pytest.raises(UsageError, match="`metric` must be one of"):
        table.worst("mrr")
    with pytest.raises(UsageError, match=r"must have the shape \(6,\)"):
        class_table(VALUES, [1, 2])
    with pytest.raises(UsageError, match="`per_query` .* at least one metric"):
        class_table({}, [])
    lone = class_table({"mrr": np.array([np.nan, np.nan])}, [0, 1])
    with pytest.raises(UsageError, match="2 classes without one"):
        lone.worst("mrr")
