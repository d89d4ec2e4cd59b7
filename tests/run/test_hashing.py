import dataclasses
import os

import keras
import numpy as np
import pytest

from keras_dml.config import resolve
from keras_dml.data.manifest import Manifest
from keras_dml.run.cache import images_hash, weights_hash


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
