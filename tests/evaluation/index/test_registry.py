import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet
from keras_dml.errors import UsageError
from keras_dml.evaluation import ExactIndex
from keras_dml.evaluation.index.registry import (
    build_index,
    load_index,
    make_index,
)
from keras_dml.evaluation.index.scann import ScannIndex


def make(rows):
    return np.random.default_rng(0).standard_normal((rows, 4))


def test_an_index_by_its_name():
    index = make_index(metric="dot", weights_hash="abc")
    assert isinstance(index, ExactIndex)
    assert (index.metric, index.weights_hash) == ("dot", "abc")


def test_scann_by_its_name():
    pytest.importorskip("scann")
    index = make_index("scann", shape="tree")
    assert isinstance(index, ScannIndex) and index.shape == "tree"


def test_refuses_other_names():
    with pytest.raises(UsageError, match=r"one of 'exact', 'scann'"):
        make_index("faiss")


def test_refuses_what_does_not_say_how_to_compare():
    rows = EmbeddingSet(make(4))
    assert build_index("exact", rows, np.bool_(False)).metric == "euclidean"
    with pytest.raises(UsageError, match="`normalize` must be True or False"):
        build_index("exact", rows, normalize="false")


def test_loads_a_file_or_a_folder(tmp_path):
    pytest.importorskip("scann")
    for index in (ExactIndex(weights_hash="a"), ScannIndex(weights_hash="a")):
        path = tmp_path / type(index).__name__
        index.build(make(5)).save(path)
        assert type(load_index(path, weights_hash="a")) is type(index)
        with pytest.raises(UsageError, match="`weights_hash` must be that of"):
            load_index(path, weights_hash="b")
