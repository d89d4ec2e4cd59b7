"""Training on random views of each image, without labels."""

import numpy as np
import pytest

import keras_dml
from keras_dml.config import StageConfig, resolve
from keras_dml.run.batches import (
    make_sampler,
    sampling_warnings,
    train_batches,
)
from keras_dml.run.data import RunData, stage_data
from keras_dml.run.folder import RunFolder
from keras_dml.run.overview import overview
from tests.images import image_folder
from tests.run.made_up import SHAPE, manifest

STAGE = StageConfig(phases=[{}])


def settings(*overrides):
    return resolve(
        "vicreg",
        "omniglot",
        overrides=[
            f"data.image_size={SHAPE[0]}",
            "data.channels=3",
            "sampling.batch_size=12",
            "sampling.steps_per_epoch=5",
            *overrides,
        ],
    )


def parts(config):
    images = manifest(classes=30, each=4)
    data = RunData(images, images, seen=False, partial=False, skipped=0)
    return stage_data(data, STAGE, config)


def test_images_that_train_are_classes_and_those_that_validate_are_not():
    views = parts(settings())
    classes = parts(settings("sampling.kind=balanced"))
    np.testing.assert_array_equal(views.fit.labels, np.arange(len(views.fit)))
    assert list(views.fit.class_names) == views.fit.ids.tolist()
    np.testing.assert_array_equal(views.fit.images, classes.fit.images)
    np.testing.assert_array_equal(
        views.validation.labels, classes.validation.labels
    )


@pytest.mark.parametrize("images", [2, 3])
def test_a_batch_holds_views_of_each_of_its_images(images):
    config = settings(f"sampling.images={images}")
    fit = parts(config).fit
    for epoch in range(2):
        for rows in make_sampler(fit, config)(epoch):
            assert len(rows) == 12
            assert len(set(rows.tolist())) == 12 // images
            np.testing.assert_array_equal(
                rows, np.repeat(rows[::images], images)
            )
    assert sampling_warnings(fit, config) == []


def test_views_of_an_image_have_its_label_and_other_pixels():
    config = settings("augmentation.brightness=0.5")
    fit = parts(config).fit
    batches = train_batches(fit, config, first_epoch=0, steps=5)
    inputs, labels = next(iter(batches))
    pixels, labels = inputs["image"].numpy(), labels.numpy()
    rows = make_sampler(fit, config)(0)[0]
    np.testing.assert_array_equal(labels, rows)
    assert (abs(pixels[::2] - pixels[1::2]).max(axis=(1, 2, 3)) > 1).all()


def test_the_overview_says_that_labels_are_left_out(tmp_path):
    config = settings("data.natural_size=4")
    images = manifest(classes=30, each=4)
    data = RunData(images, images, seen=False, partial=False, skipped=0)
    text = overview(config, data, RunFolder(tmp_path))
    assert "108 images, each a class" in text


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["vicreg", "barlow_twins", "simsiam"])
def test_labels_of_images_that_train_change_nothing(recipe, tmp_path):
    """Two runs: the labels of the second are dealt out anew."""
    image_folder(tmp_path, classes=8, images=4)
    found = []
    for classes in (4, 3):
        lines = ["path,label,split"]
        for row in range(32):
            path = f"class_{row // 4}/{row % 4}.jpg"
            label = row // 4 if row >= 16 else 90 + row % classes
            lines.append(f"{path},{label},{'test' if row >= 16 else 'train'}")
        table = tmp_path / f"{classes}.csv"
        table.write_text("\n".join(lines) + "\n")
        run = keras_dml.fit(
            table,
            recipe=recipe,
            backbone="small_cnn",
            epochs=2,
            output=tmp_path / f"run-{classes}",
            export=False,
            report=False,
            settings={
                "data.validation": "none",
                "sampling.batch_size": 8,
                "sampling.steps_per_epoch": 3,
                "model.dim": 8,
                "data.image_size": 28,
            },
        )
        embedder = run.embedder
        found.append(embedder.get_weights())
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
