import logging

import numpy as np
import pytest

from keras_dml.embeddings import EmbeddingSet
from keras_dml.run.cache import EmbeddingCache

ROWS = EmbeddingSet(np.eye(3), [0, 0, 1], list("abc"), weights_hash="w")


@pytest.fixture
def cache(tmp_path):
    cache = EmbeddingCache(tmp_path / "embeddings" / "test.npz")
    assert cache.load("w", "i") is None
    cache.save(ROWS, "i")
    return cache


def test_what_is_right_comes_back(cache):
    for images_hash in ("i", None):
        loaded = cache.load("w", images_hash)
        np.testing.assert_array_equal(loaded.embeddings, ROWS.embeddings)
        assert loaded.ids.tolist() == list("abc")


def test_other_weights_and_other_images_are_never_returned(cache, caplog):
    with caplog.at_level(logging.INFO, "keras_dml"):
        assert cache.load("v", "i") is None
        assert cache.load("v") is None
        assert cache.load("w", "j") is None
    assert "weights have changed since" in caplog.text
    assert "images have changed since" in caplog.text


def test_caches_of_a_run_log_a_reason_once(cache, caplog):
    """`search` reads two caches, and said twice that the images changed."""
    told = set()
    with caplog.at_level(logging.INFO, "keras_dml"):
        for _ in range(2):
            assert EmbeddingCache(cache.path, told).load("w", "j") is None
        assert EmbeddingCache(cache.path, told).load("v", "i") is None
    assert caplog.messages == [
        f"The run's {changed} have changed since its images were embedded: "
        "they are embedded again, and nothing is trained."
        for changed in ("images", "weights")
    ]


@pytest.mark.parametrize("key", ["embeddings", "labels", "images_hash", "hash"])
def test_what_lacks_an_array_is_not_returned(cache, key):
    with np.load(cache.path) as file:
        arrays = {name: file[name] for name in file.files if name != key}
    np.savez(cache.path, **arrays)
    assert cache.load("w", "i") is None


def test_a_damaged_file_is_not_returned(cache):
    content = cache.path.read_bytes()
    for damage in (b"", content[:-30], b"PK" + content[:50]):
        cache.path.write_bytes(damage)
        assert cache.load("w", "i") is None
    cache.save(ROWS, "i")
    assert cache.load("w", "i") is not None
