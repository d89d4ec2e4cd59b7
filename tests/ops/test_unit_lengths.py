"""Embeddings of length 1 are told from similarities, and cheaply."""

import numpy as np
import pytest
from keras import ops

from keras_dml.ops import unit_lengths
from keras_dml.ops.unit_lengths import look_like_embeddings

UNIT = np.array([[0.6, 0.8], [0.8, -0.6], [-0.6, 0.8]], "float32")


def test_all_rows_count():
    assert look_like_embeddings(ops.convert_to_tensor(UNIT))
    for row in range(len(UNIT)):
        others = UNIT.copy()
        others[row] *= 1.01
        assert not look_like_embeddings(ops.convert_to_tensor(others))
    assert not look_like_embeddings(ops.convert_to_tensor(UNIT[:0]))


def test_a_single_nonzero_is_one_hot():
    assert not look_like_embeddings(ops.convert_to_tensor(np.eye(3)))


@pytest.mark.parametrize("rows", [2 * UNIT, np.eye(3, dtype="float32")])
def test_one_row_is_fetched_of_similarities(monkeypatch, rows):
    """A step that is not compiled would wait for all of them to be fetched."""
    fetched = []

    def counted(tensor):
        fetched.append(len(tensor))
        return ops.convert_to_numpy(tensor)

    monkeypatch.setattr(unit_lengths, "known_values", counted)
    assert not look_like_embeddings(ops.convert_to_tensor(rows))
    assert fetched == [1]
