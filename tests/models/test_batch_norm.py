"""What a real `fit` does to the batch normalization in each mode."""

import contextlib
import typing

import keras
import numpy as np
import pytest

from keras_dml.config.sections import ModelConfig
from keras_dml.models import (
    build_embedder,
    build_trainer,
    refresh_bn,
    synchronize_batch_norm,
)
from keras_dml.models.batch_norm import BATCH_NORM_MODES
from tests.conformance import to_numpy

RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(0, 255, (8, 16, 16, 1)).astype("float32")
LABELS = np.arange(8) % 4

# Which weights of the backbone move.
MOVES = {
    "train": {"kernel", "gamma", "beta", "moving_mean", "moving_variance"},
    "frozen_statistics": {"kernel", "gamma", "beta"},
    "frozen": {"kernel"},
}


def fit(batch_norm, **changes):
    keras.utils.set_random_seed(0)
    embedder = build_embedder(
        "small_cnn", IMAGES.shape[1:], dim=4, batch_norm=batch_norm, **changes
    )
    backbone = embedder.get_layer("backbone")
    before = {w.path: to_numpy(w) for w in backbone.weights}
    trainer = build_trainer(embedder, num_classes=4)
    trainer.compile(
        keras.optimizers.SGD(1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    trainer.fit({"image": IMAGES, "label": LABELS}, LABELS, verbose=0)
    return embedder, before


@pytest.mark.slow
@pytest.mark.parametrize("mode", MOVES)
def test_what_moves(mode):
    embedder, before = fit(mode)
    moved = {
        weight.path.split("/")[-1]
        for weight in embedder.get_layer("backbone").weights
        if not np.array_equal(to_numpy(weight), before[weight.path])
    }
    assert moved == MOVES[mode]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MOVES)
def test_survives_save_and_load(mode, tmp_path):
    embedder, _ = fit(mode)
    embedder.save(tmp_path / "embedder.keras")
    loaded = keras.saving.load_model(tmp_path / "embedder.keras")
    np.testing.assert_array_equal(
        to_numpy(loaded(IMAGES)), to_numpy(embedder(IMAGES))
    )
    assert len(loaded.trainable_weights) == len(embedder.trainable_weights)


@pytest.mark.slow
def test_a_configuration_takes_the_same_modes():
    field = ModelConfig.model_fields["batch_norm"]
    assert typing.get_args(field.annotation) == BATCH_NORM_MODES


def test_all_modes_start_from_the_same_weights():
    starts = [list(fit(mode)[1].values()) for mode in MOVES]
    for other in starts[1:]:
        for first, second in zip(starts[0], other, strict=True):
            np.testing.assert_array_equal(first, second)


def test_frozen_statistics_under_mixed_precision():
    embedder, _ = fit("frozen_statistics", policy="mixed_bfloat16")
    norms = [
        layer
        for layer in embedder.get_layer("backbone").layers
        if isinstance(layer, keras.layers.BatchNormalization)
    ]
    assert {layer.compute_dtype for layer in norms} == {"bfloat16"}
    assert np.isfinite(to_numpy(embedder(IMAGES))).all()


def _trained_on_halves(scope, synchronized):
    """Weights after two steps of a network with batch norm everywhere."""
    with scope:
        keras.utils.set_random_seed(0)
        embedder = build_embedder(
            "small_cnn", IMAGES.shape[1:], dim=4, normalization="batch_norm"
        )
        trainer = build_trainer(embedder, 4)
        synchronize_batch_norm(trainer, synchronized)
        trainer.compile(
            keras.optimizers.SGD(1e-3),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
    # The halves differ, as the parts of a batch grouped by class do.
    images = IMAGES * np.linspace(0.1, 1, 8)[:, None, None, None]
    inputs = {"image": images, "label": LABELS}
    trainer.fit(
        inputs, LABELS, batch_size=8, epochs=2, shuffle=False, verbose=0
    )
    return {w.path: to_numpy(w) for w in trainer.weights}


@pytest.mark.slow
def test_synchronized_replicas_train_like_one_device(strategy):
    one = _trained_on_halves(contextlib.nullcontext(), False)
    two = _trained_on_halves(strategy.scope(), True)
    for path, value in one.items():
        np.testing.assert_allclose(
            two[path], value, rtol=1e-4, atol=1e-5, err_msg=path
        )
    apart = _trained_on_halves(strategy.scope(), False)
    assert any(
        not np.allclose(apart[path], one[path], rtol=1e-2, atol=1e-3)
        for path in one
    )


@pytest.mark.slow
def test_statistics_are_refreshed_alike_on_replicas(strategy):
    results = []
    for scope in (contextlib.nullcontext(), strategy.scope()):
        with scope:
            keras.utils.set_random_seed(0)
            embedder = build_embedder("small_cnn", IMAGES.shape[1:], dim=4)
            synchronize_batch_norm(embedder)
        refresh_bn(embedder, [IMAGES, IMAGES / 2])
        results.append([to_numpy(w) for w in embedder.weights])
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-6)
