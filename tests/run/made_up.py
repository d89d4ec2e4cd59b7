"""A pretrained network without training, and images that suit it."""

import keras
import numpy as np

import keras_dml
from keras_dml.config import flags_of, resolve
from keras_dml.data.manifest import Manifest
from keras_dml.models import build_embedder, build_trainer, custom_backbone
from keras_dml.models.weights import build_with_weights
from keras_dml.run.data import StageData
from keras_dml.run.models import Models
from tests.images import image_folder

SIDE = 4
SHAPE = (SIDE, SIDE, 3)


def manifest(classes=12, each=10, seed=1, nuisance=45.0):
    """Images of faint classes under strong patterns that all classes share."""
    directions = np.random.default_rng(0).normal(size=(6, SIDE * SIDE * 3))
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), each)
    pixels = 128 + rng.normal(size=(classes, SIDE * SIDE * 3))[labels] * 8
    pixels += nuisance * rng.normal(size=(len(labels), 6)) @ directions / 3
    pixels += rng.normal(size=pixels.shape) * 4
    return Manifest(
        name="made up",
        labels=labels,
        class_names=[f"{seed}-{label}" for label in range(classes)],
        ids=[f"{seed}-{row}" for row in range(len(labels))],
        images=np.clip(pixels, 0, 255).astype(np.uint8).reshape(-1, *SHAPE),
    )


def stage(**arguments):
    """Training images, and validation images of other classes."""
    return StageData(manifest(seed=1, **arguments), manifest(seed=2))


def settings(*overrides):
    """A settled configuration for these images."""
    return resolve(
        "norm_softmax",
        "omniglot",
        overrides=[
            f"data.image_size={SIDE}",
            "data.channels=3",
            "model.dim=16",
            "model.weights=file",
            "model.whitening=[0.1, 1.0]",
            "evaluation.interpolate=[0.0, 0.5, 1.0]",
            *overrides,
        ],
    )


def models(num_classes=12, dim=16, takes="similarities"):
    """Models whose features are the pixels."""
    keras.utils.set_random_seed(0)
    pixels = keras.Sequential([keras.Input(SHAPE), keras.layers.Flatten()])
    embedder = build_embedder(
        custom_backbone(pixels), SHAPE, dim=dim, pooling="none"
    )
    return Models(embedder, build_trainer(embedder, num_classes, takes))


QUICK = {
    "sampling.batch_size": 16,
    "sampling.steps_per_epoch": 3,
    "model.dim": 8,
    "evaluation.k": [1, 2],
    "data.image_size": 28,
}


def fit_and_final(photos, weights, output, **options):
    """Trains quickly on photos, and once more on all of their classes."""
    return keras_dml.fit(
        photos,
        backbone="small_cnn",
        weights=weights,
        output=output,
        final="all",
        export=False,
        report=False,
        settings=QUICK,
        **options,
    )


def quick_settings(photos, weights, **flags):
    """The settings of such a training."""
    return resolve(
        "norm_softmax",
        str(photos),
        flags=flags_of({"backbone": "small_cnn", "weights": weights, **flags}),
        overrides=[f"{key}={value}" for key, value in QUICK.items()],
    )


def network_of(weights):
    """The network whose weights a file holds."""
    return build_with_weights("small_cnn", (28, 28, 3), str(weights))


def pretrained_photos(folder):
    """A folder of weights of `small_cnn`, and of `images` to train it on."""
    write_weights(folder / "small_cnn.weights.h5")
    image_folder(folder / "images", classes=48, images=4, size=28)
    return folder


def write_weights(path):
    """Writes weights of `small_cnn` for color images, and returns the path."""
    keras.utils.set_random_seed(0)
    network = build_with_weights("small_cnn", (28, 28, 3), "none")
    network.save_weights(path)
    return path
