"""Odd arguments raise an error of ours that names them, or are taken."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_dml import evaluate
from keras_dml.embeddings import (
    EmbeddingSet,
    iterate_embeddings,
    load_embeddings,
    save_embeddings,
)
from keras_dml.errors import UsageError
from tests.hostile.calls.cases import CASES, TAKEN
from tests.hostile.runner import LONGEST, limited

V = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
L = np.arange(20) // 2
NAMES = {
    "EmbeddingSet": EmbeddingSet,
    "L": L,
    "V": V,
    "evaluate": evaluate,
    "iterate_embeddings": iterate_embeddings,
    "itertools": itertools,
    "keras": keras,
    "load_embeddings": load_embeddings,
    "np": np,
    "save_embeddings": save_embeddings,
    "tf": tf,
    "vectors": EmbeddingSet(V, L),
}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("expression", "message"), CASES)
def test_it_is_refused(expression, message):
    with pytest.raises(UsageError, match=message) as raised, limited():
        eval(expression, dict(NAMES))
    assert len(str(raised.value)) < LONGEST


@pytest.mark.parametrize("expression", TAKEN)
def test_it_is_taken(expression):
    with limited():
        assert repr(eval(expression, dict(NAMES)))
