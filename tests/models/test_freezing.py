import gc
import weakref

import keras
import numpy as np
import pytest

from keras_dml.models import freezing

RNG = np.random.default_rng(0)
DATA = (RNG.standard_normal((32, 4)) * 3 + 5).astype("float32")
TARGETS = RNG.standard_normal((32, 2)).astype("float32")


def build():
    keras.utils.set_random_seed(0)
    x = keras.Input((4,))
    inner = keras.Sequential(
        [
            keras.Input((4,)),
            keras.layers.Dense(4, name="dense"),
            keras.layers.BatchNormalization(name="bn"),
        ],
        name="backbone",
    )
    return keras.Model(x, keras.layers.Dense(2, name="head")(inner(x)))


def changes(model):
    """Which variables a fit moves, by path."""
    model.compile(keras.optimizers.SGD(0.01), "mse")
    before = {v.path: np.array(v.numpy()) for v in model.variables}
    model.fit(DATA, TARGETS, verbose=0)
    return {
        v.path
        for v in model.variables
        if v.path in before and not np.array_equal(v.numpy(), before[v.path])
    }


HEAD = {"head/kernel", "head/bias"}
STATISTICS = {"backbone/bn/moving_mean", "backbone/bn/moving_variance"}
WEIGHTS = {
    "backbone/dense/kernel",
    "backbone/dense/bias",
    "backbone/bn/gamma",
    "backbone/bn/beta",
}


def test_everything_moves_at_first():
    moved = changes(build())
    # The mean of the batch is subtracted, so this bias has no gradient.
    assert moved | {"backbone/dense/bias"} == HEAD | STATISTICS | WEIGHTS


def test_frozen_weights_let_the_statistics_move():
    model = build()
    freezing.freeze_weights(model.get_layer("backbone"))
    assert changes(model) == HEAD | STATISTICS


def test_frozen_weights_leave_the_layer_in_training_mode():
    model = build()
    backbone = model.get_layer("backbone")
    expected = backbone(DATA, training=True)
    freezing.freeze_weights(backbone)
    np.testing.assert_array_equal(backbone(DATA, training=True), expected)


def test_freezing_all_keeps_the_statistics():
    model = build()
    freezing.freeze_all(model.get_layer("backbone"))
    assert changes(model) == HEAD


def test_unfreezing_restores_what_was_trainable():
    model = build()
    backbone = model.get_layer("backbone")
    backbone.get_layer("bn").trainable = False
    backbone.get_layer("dense").bias.trainable = False
    for freeze in (freezing.freeze_weights, freezing.freeze_all):
        freeze(backbone)
        assert backbone.trainable_variables == []
        freezing.unfreeze(backbone)
        assert [v.path for v in backbone.trainable_variables] == [
            "backbone/dense/kernel"
        ]
        assert backbone.trainable and not backbone.get_layer("bn").trainable


def test_unfreezing_after_both_modes_goes_back_to_the_start():
    model = build()
    backbone = model.get_layer("backbone")
    freezing.freeze_weights(backbone)
    freezing.freeze_all(backbone)
    freezing.unfreeze(backbone)
    assert (
        changes(model) | {"backbone/dense/bias"} == HEAD | STATISTICS | WEIGHTS
    )


def test_unfreezing_what_was_never_frozen_does_nothing():
    model = build()
    model.get_layer("backbone").get_layer("dense").trainable = False
    freezing.unfreeze(model.get_layer("backbone"))
    assert not model.get_layer("backbone").get_layer("dense").trainable


@pytest.mark.slow
def test_a_frozen_model_is_not_kept_alive():
    layer = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    freezing.freeze_all(layer)
    reference = weakref.ref(layer)
    del layer
    keras.backend.clear_session()
    gc.collect()
    assert reference() is None
