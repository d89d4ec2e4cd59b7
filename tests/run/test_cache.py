import dataclasses
import errno
import logging
import os

import keras
import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.data.manifest import Manifest
from keras_dml.embeddings import EmbeddingSet
from keras_dml.run.cache import EmbeddingCache, images_hash, weights_hash

ROWS = EmbeddingSet(np.eye(3), [0, 0, 1], list("abc"), weights_hash="w")


@pytest.fixture
def cache(tmp_path):
    cache = EmbeddingCache(tmp_path / "embeddings" / "test.npz")
    assert cache.load("w", "i") is None
    cache.save(ROWS, "i")
    return cache


def test_what_is_right_comes_back(cache):
    for present in ("i", None):
        loaded = cache.load("w", present)
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


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EIO])
def test_only_a_read_only_folder_goes_without(cache, monkeypatch, caplog, code):
    """A full or broken disk is an error."""

    def refused(*args, **arrays):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("keras_dml.run.cache.save_embeddings", refused)
    if code == errno.EIO:
        with pytest.raises(OSError, match=os.strerror(code)):
            cache.save(ROWS, "i")
        return
    cache.save(ROWS, "i")
    (message,) = caplog.messages
    assert "embedded again" in message and os.strerror(code) in message


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


@pytest.fixture(scope="module")
def config():
    return resolve("norm_softmax", "digits")


def model():
    return keras.Sequential(
        [
            keras.Input((3,)),
            keras.layers.Dense(4),
            keras.layers.BatchNormalization(),
        ]
    )


def test_saving_keeps_the_hash_and_training_changes_it(tmp_path):
    first = model()
    first.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert weights_hash(loaded) == weights_hash(first)
    assert weights_hash(model()) != weights_hash(first)
    # The moving mean trains nothing, and embeds all the same.
    before = weights_hash(first)
    first.layers[-1].moving_mean.assign(np.ones(4))
    assert weights_hash(first) != before


def files(folder, **changes):
    paths = []
    for name in "abc":
        path = folder / f"{name}.png"
        path.write_text(name)
        os.utime(path, ns=(1, 1))
        paths.append(str(path))
    fields = {"labels": [0, 0, 1], "ids": list("abc"), "paths": paths}
    return Manifest(name="x", class_names="xy", **{**fields, **changes})


def test_what_decides_the_embeddings_changes_the_hash(tmp_path, config):
    images = files(tmp_path)
    first = images_hash(images, config)
    assert images_hash(files(tmp_path), config) == first
    for changes in (
        {"labels": [0, 1, 1]},
        {"ids": list("abd")},
        {"role": ["query", "gallery", "gallery"]},
        {"split": ["train", "train", "test"]},
    ):
        assert images_hash(files(tmp_path, **changes), config) != first
    os.utime(tmp_path / "b.png", ns=(2, 2))
    assert images_hash(images, config) != first
    (tmp_path / "b.png").write_text("longer")
    os.utime(tmp_path / "b.png", ns=(1, 1))
    assert images_hash(images, config) != first
    (tmp_path / "b.png").unlink()
    assert images_hash(images, config) != first


def test_settings_count_and_places_do_not(tmp_path, config):
    images = files(tmp_path)

    def changed(section, **values):
        part = getattr(config, section).model_copy(update=values)
        return config.model_copy(update={section: part})

    first = images_hash(images, config)
    assert images_hash(images, changed("data", data_dir="x")) == first
    assert images_hash(images, changed("augmentation", resize=99)) != first
    assert images_hash(images, changed("data", train_fraction=0.3)) != first


def test_pixels_in_memory_count(config):
    pixels = np.zeros((2, 3, 3, 1), np.uint8)
    images = Manifest("x", [0, 0], ["x"], ["a", "b"], images=pixels)
    other = dataclasses.replace(images, images=pixels + np.uint8(1))
    assert images_hash(images, config) != images_hash(other, config)
