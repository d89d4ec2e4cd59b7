"""The references of an index, whatever form they are given in."""

import types

import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet, save_embeddings
from keras_dml.export.gallery import is_source, read_gallery

RUN = types.SimpleNamespace(weights_hash="f00")


@pytest.mark.parametrize("labels", [None, ["a", "b", "a"]])
def test_labels_are_not_needed(labels, tmp_path):
    rows = EmbeddingSet(np.eye(3), labels, list("xyz"), weights_hash="f00")
    path = tmp_path / "catalogue.npz"
    save_embeddings(path, rows)
    for gallery in (rows, path):
        read = read_gallery(RUN, gallery)
        assert read.ids.tolist() == ["x", "y", "z"]
        assert (read.labels is None) == (labels is None)


def test_only_images_may_lie_in_a_folder_of_data(tmp_path):
    """`data_dir` of a gallery of vectors is that of the run's own images."""
    rows = EmbeddingSet(np.eye(3), weights_hash="f00")
    save_embeddings(tmp_path / "catalog.npz", rows)
    assert is_source("cub200") and is_source(tmp_path)
    for gallery in (None, rows, tmp_path / "catalog.npz"):
        assert not is_source(gallery)
