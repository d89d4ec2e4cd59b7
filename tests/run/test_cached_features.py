"""Training of a head on features that were computed once."""

import dataclasses
import itertools

import numpy as np
import pytest

from keras_dml.models import build_trainer, pooled_features
from keras_dml.run import fit as training
from keras_dml.run.batches import train_batches
from keras_dml.run.cached_features import CachedFeatures
from keras_dml.run.compiling import unfreeze
from keras_dml.run.data import StageData
from keras_dml.run.measure import embed
from keras_dml.run.models import trains_on_features
from keras_dml.run.trained_run import TrainedRun
from tests.images import image_folder
from tests.run import made_up

DATA = made_up.stage()
FROZEN = "stages=[{phases: [{epochs: 2, freeze: all}]}]"


def settings(*overrides):
    return made_up.settings(
        FROZEN,
        "sampling.batch_size=12",
        "sampling.steps_per_epoch=3",
        "data.train_size=4",
        *overrides,
    )


STILL = (
    *("augmentation.crop=center", "augmentation.flip=false"),
    *("augmentation.rotation=0.0", "augmentation.shear=0.0"),
    *("augmentation.scale=[1.0, 1.0]", "augmentation.translation=0.0"),
    "augmentation.brightness=0.0",
)


def first(batches, count):
    return list(itertools.islice(batches.as_numpy_iterator(), count))


def test_only_a_network_that_never_moves_is_cached():
    assert trains_on_features(settings())
    assert not trains_on_features(settings("sampling.kind=views"))
    for phase in ("{}", "{freeze: weights}", "{freeze: all, refresh_bn: 2}"):
        two = f"stages=[{{phases: [{{name: a, freeze: all}}, {phase}]}}]"
        assert not trains_on_features(settings(two))


@pytest.mark.slow
def test_views_are_the_features_of_changed_images():
    """A view depends on the seed and its number alone."""
    embedder = made_up.models().embedder
    moving = settings("augmentation.brightness=0.5")
    views = CachedFeatures(embedder, DATA, moving).views
    again = CachedFeatures(embedder, DATA, moving).views
    assert len(views) == 4
    np.testing.assert_array_equal(views, again)
    assert np.abs(views[0] - views[1]).max() > 1
    other = CachedFeatures(embedder, DATA, moving.changed(seed=1)).views
    assert np.abs(views[0] - other[0]).max() > 1


def test_the_head_trains_on_what_the_network_would_give():
    """Without random changes both trainers see and answer the same."""
    config = settings(*STILL)
    models = made_up.models()
    features = CachedFeatures(models.embedder, DATA, config)
    for view in features.views:
        np.testing.assert_allclose(
            view,
            embed(pooled_features(models.embedder), DATA.fit, config),
            rtol=1e-5,
        )
    head = build_trainer(models.embedder, 12, "similarities", on_features=True)
    for proxies in (head, models.trainer):
        proxies.get_layer("proxies").proxies.assign(
            np.ones(head.get_layer("proxies").proxies.shape)
            * np.arange(12)[:, None]
        )
    images = train_batches(DATA.fit, config, first_epoch=1, steps=3)
    pairs = zip(
        first(images, 4),
        first(features.train_batches(first_epoch=1), 4),
        strict=True,
    )
    for (seen, label), (cached, same) in pairs:
        np.testing.assert_array_equal(label, same)
        np.testing.assert_allclose(
            models.trainer(seen), head(cached), atol=1e-5
        )


def test_images_of_several_labels_train_on_the_pairs_that_share_one():
    single = np.eye(DATA.fit.num_classes, dtype=bool)[DATA.fit.labels]
    several = single | np.roll(single, 1, axis=1)
    images = dataclasses.replace(DATA.fit, labels=several)
    config = settings(*STILL)
    features = CachedFeatures(
        made_up.models().embedder, StageData(images, None), config
    )
    pairs = zip(
        first(train_batches(images, config, first_epoch=0, steps=3), 3),
        first(features.train_batches(first_epoch=0), 3),
        strict=True,
    )
    for (seen, shared), (cached, same) in pairs:
        np.testing.assert_array_equal(shared, same)
        assert shared.shape == (12, 12)
        assert 0 < shared.mean() < 1
        np.testing.assert_array_equal(seen["label"], cached["label"])


def test_a_resumed_epoch_goes_on_with_the_same_batches():
    config = settings("augmentation.brightness=0.5")
    features = CachedFeatures(made_up.models().embedder, DATA, config)
    endless = features.train_batches(first_epoch=0)
    assert endless.options().autotune.enabled is False
    whole = first(endless, 8)
    rest = first(features.train_batches(first_epoch=1, first_step=2), 3)
    for (one, _), (other, _) in zip(whole[5:], rest, strict=True):
        np.testing.assert_array_equal(one["image"], other["image"])
        np.testing.assert_array_equal(one["label"], other["label"])


def test_a_trainer_on_features_has_nothing_to_unfreeze():
    embedder = made_up.models().embedder
    head = build_trainer(embedder, 12, "similarities", on_features=True)
    assert "backbone" not in [layer.name for layer in head.layers]
    unfreeze(head)


@pytest.mark.slow
def test_a_frozen_run_trains_its_head_alone(tmp_path):
    weights = made_up.write_weights(tmp_path / "small_cnn.weights.h5")
    photos = image_folder(tmp_path / "photos", classes=24, images=4, size=28)
    config = made_up.quick_settings(photos, weights, freeze="all", minutes=60)
    config = config.changed(
        passes=4, evaluation={"interpolate": [1.0], "every": 1}
    )
    metrics = training.fit(config, tmp_path / "run")
    assert metrics["length"]["steps"] > 3
    run = TrainedRun(tmp_path / "run")
    history = run.folder.history.read_text().splitlines()
    assert "val_map@r" in history[0]
    start = made_up.network_of(weights)
    for old, new in zip(
        start.get_weights(),
        run.embedder.get_layer("backbone").get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(old, new)
