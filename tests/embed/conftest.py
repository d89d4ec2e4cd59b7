"""A run, its export, and photos of all kinds."""

import keras
import pytest
from PIL import Image

from keras_dml.config import dump_run_config, resolve
from keras_dml.export import export_saved_model
from tests.images import image_folder

SIZE = 8


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder as `fit` leaves it, with an untrained embedder."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    folder.mkdir()
    config = resolve(
        "norm_softmax",
        "digits",
        overrides=[
            f"data.image_size={SIZE}",
            "data.channels=3",
            "augmentation.resize=12",
            "model.dim=5",
        ],
    )
    (folder / "config.yaml").write_text(dump_run_config(config))
    keras.utils.set_random_seed(0)
    inputs = keras.Input((SIZE, SIZE, 3))
    outputs = keras.layers.Conv2D(4, 3, activation="relu")(inputs / 255.0)
    outputs = keras.layers.Dense(5)(keras.layers.Flatten()(outputs))
    outputs = keras.layers.UnitNormalization(name="unit")(outputs)
    keras.Model(inputs, outputs).save(folder / "embedder.keras")
    return folder


@pytest.fixture(scope="module")
def saved_model(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export") / "saved_model"
    model = keras.saving.load_model(run / "embedder.keras", compile=False)
    return export_saved_model(model, folder, resize=12)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Good pictures of several kinds and sizes, and four bad ones."""
    folder = image_folder(
        tmp_path_factory.mktemp("images") / "photos", classes=3, images=5
    )
    Image.new("RGB", (1, 1), "red").save(folder / "pixel.jpg")
    Image.new("RGB", (40, 20), "blue").save(folder / "wide.png")
    Image.new("L", (900, 900)).save(folder / "large.png")
    good = (folder / "class_0" / "0.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(good[:-100])
    (folder / "empty.jpg").touch()
    (folder / "letter, sent.jpg").write_text("Dear all")
    return folder
