import numpy as np
import pytest

from keras_dml.evaluation.index import ranking as row_threads


@pytest.mark.parametrize("least", [1, 10**9])
@pytest.mark.parametrize("rows", [1, 31, 33, 200])
def test_rows_come_back_in_order(least, rows, monkeypatch):
    monkeypatch.setattr(row_threads, "MIN_SCORES_FOR_THREADS", least)
    matrix = np.arange(rows * 2).reshape(rows, 2)
    found = row_threads.map_rows(
        lambda row, name: (row.sum(), name), matrix, range(rows)
    )
    assert found == [(4 * row + 1, row) for row in range(rows)]
