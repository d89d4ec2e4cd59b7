import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.evaluation.ids import IdTable


@pytest.mark.parametrize("strings", [False, True])
def test_rows_of_ids(strings):
    ids = np.array([30, 10, 20]).astype(str if strings else int)
    wanted = np.array([20, 30, 99, 5]).astype(ids.dtype)
    rows = IdTable.of(ids, 3).rows_of(wanted, 4, "ids")
    np.testing.assert_array_equal(rows, [2, 0, -1, -1])


def test_ids_count_from_zero_unless_given():
    np.testing.assert_array_equal(IdTable.of(None, 3).given, [0, 1, 2])


def test_rows_come_and_go_and_the_order_given_stays():
    table = IdTable.of(["d", "b"], 2).extended(["long", "a"], 2)
    table = table.take([3, 1, 2])
    np.testing.assert_array_equal(table.ids, ["a", "b", "long"])
    np.testing.assert_array_equal(table.given, ["b", "long", "a"])
    np.testing.assert_array_equal(table.order, [2, 0, 1])
    np.testing.assert_array_equal(table.without(["b"]), [0, 2])
    np.testing.assert_array_equal(table.without([]), [0, 1, 2])


@pytest.mark.parametrize(
    "use, message",
    [
        (lambda table: IdTable.of([4, 5, 4], 3), "4 more than once"),
        (lambda table: table.extended([7], 1), r"must be new .*\[7\]"),
        (lambda table: table.extended(None, 1), "must be given"),
        (lambda table: table.extended([1, 2], 1), r"shape \(1,\)"),
        (lambda table: table.without([8]), r"must be in the index.*\[8\]"),
        (lambda table: table.without([7, 9, 7]), "all 2 of them"),
        (lambda table: table.rows_of(["a"], 1, "names"), "`names` and `ids`"),
    ],
)
def test_refuses(use, message):
    with pytest.raises(UsageError, match=message):
        use(IdTable.of([9, 7], 2))
