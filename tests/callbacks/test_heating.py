"""`HeatUp` and `GradualHeatUp`."""

import keras
import numpy as np
import pytest

from keras_dml import layers, losses
from keras_dml.callbacks import GradualHeatUp, HeatUp
from keras_dml.optimizers import LearningRate
from tests.callbacks.small_trainer import Record, build, fit, per_variable

BOTH = [
    lambda: HeatUp(epoch=2, scale=4.0),
    lambda: GradualHeatUp(every=2, scale_factor=0.5, learning_rate_factor=0.1),
]


def state(model):
    rates = LearningRate(model.optimizer).values().values()
    return float(model.get_layer("logits").scale), *rates


def test_heats_at_the_epoch():
    record = Record(state)
    trainer, _ = build()
    fit(trainer, 4, [HeatUp(epoch=2, scale=4.0), record])
    expected = [(16, 0.1), (16, 0.1), (4, 0.01), (4, 0.01)]
    np.testing.assert_allclose(record.values, expected, rtol=1e-6)


def test_heats_gradually():
    record = Record(state)
    trainer, _ = build()
    heating = GradualHeatUp(every=2, scale_factor=0.5, learning_rate_factor=0.1)
    fit(trainer, 6, [heating, record])
    expected = [(16, 0.1)] * 2 + [(8, 0.01)] * 2 + [(4, 0.001)] * 2
    np.testing.assert_allclose(record.values, expected, rtol=1e-5)


def test_four_steps_of_the_gradual_form_come_near_to_heating_at_once():
    record = Record(state)
    trainer, _ = build()
    fit(trainer, 5, [GradualHeatUp(every=1), record])
    scale, rate = record.values[-1]
    np.testing.assert_allclose([scale, rate], [4.0, 0.01], rtol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("make", BOTH)
def test_every_optimizer_is_lowered(make, policy):
    trainer, _ = build(per_variable())
    before = LearningRate(trainer.optimizer).values()
    fit(trainer, 3, [make()])
    after = LearningRate(trainer.optimizer).values()
    assert len(after) == 2
    for name, rate in after.items():
        np.testing.assert_allclose(rate, 0.1 * before[name], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("make", BOTH)
def test_a_resumed_training_equals_an_uninterrupted_one(make, tmp_path):
    whole, _ = build(per_variable())
    save = keras.callbacks.ModelCheckpoint(str(tmp_path / "{epoch}.keras"))
    expected = fit(whole, 5, [make(), save])["loss"]
    for boundary in (1, 2, 3, 4):
        model = keras.saving.load_model(tmp_path / f"{boundary}.keras")
        rest = fit(model, 5, [make()], initial_epoch=boundary)["loss"]
        assert rest == expected[boundary:]
        for a, b in zip(whole.get_weights(), model.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("make", BOTH)
def test_an_epoch_that_is_begun_again_is_not_heated_twice(make):
    trainer, _ = build()
    callback = make()
    callback.set_model(trainer)
    for _ in range(3):
        callback.on_epoch_begin(2)
    assert state(trainer)[1] == pytest.approx(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("make", BOTH)
def test_reaches_every_replica(make, strategy):
    with strategy.scope():
        trainer, _ = build()
    losses = fit(trainer, 3, [make()])["loss"]
    expected = fit(build()[0], 3, [make()])["loss"]
    np.testing.assert_allclose(losses, expected, rtol=1e-4)


def test_the_rate_may_be_left_alone_under_a_schedule():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    trainer, _ = build(keras.optimizers.SGD(schedule))
    fit(trainer, 2, [HeatUp(1, scale=4.0, learning_rate_factor=1.0)])
    assert state(trainer)[0] == 4.0


@pytest.mark.parametrize("make", BOTH)
def test_a_schedule_is_refused(make):
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    trainer, _ = build(keras.optimizers.SGD(schedule, name="all"))
    with pytest.raises(ValueError, match=r"HeatUp` changes the.*\['all'\]"):
        fit(trainer, 1, [make()])


@pytest.mark.parametrize("layer_name", ["temperature", "proxies"])
def test_another_layer_is_refused(layer_name):
    trainer, _ = build()
    for callback in (
        HeatUp(1, 4.0, layer_name=layer_name),
        GradualHeatUp(layer_name=layer_name),
    ):
        with pytest.raises(ValueError, match=f"'{layer_name}'.*'logits'"):
            fit(trainer, 1, [callback])


def unbuilt():
    """A trainer that Keras builds in its first step."""
    model = keras.Sequential(
        [layers.Proxies(4), layers.ScaledLogits(16.0, name="logits")]
    )
    model.compile("sgd", losses.NormalizedSoftmax())
    return model


@pytest.mark.parametrize(
    "callback", [HeatUp(1, scale=4.0), GradualHeatUp(1, scale_factor=0.25)]
)
def test_a_model_may_be_built_by_its_first_step(callback):
    trainer = unbuilt()
    fit(trainer, 2, [callback])
    assert state(trainer)[0] == 4.0


def test_a_model_that_is_not_built_cannot_be_heated():
    with pytest.raises(ValueError, match="'logits' is not built.*Build the mo"):
        fit(unbuilt(), 1, [HeatUp(0, scale=4.0)])


def test_heating_to_the_first_scale_is_refused():
    trainer, _ = build(scale=4.0)
    with pytest.raises(ValueError, match="must differ.*scale=4.0"):
        fit(trainer, 1, [HeatUp(1, scale=4.0)])


@pytest.mark.parametrize(
    "cls, arguments, message",
    [
        (HeatUp, {"epoch": -1, "scale": 4.0}, "epoch=-1"),
        (HeatUp, {"epoch": 1, "scale": 0.0}, "`scale` must.*scale=0"),
        (GradualHeatUp, {"every": 0}, "every=0"),
        (GradualHeatUp, {"scale_factor": 1.0}, "must differ from 1"),
        (GradualHeatUp, {"learning_rate_factor": -1}, "positive.*=-1"),
    ],
)
def test_arguments_are_checked(cls, arguments, message):
    with pytest.raises(ValueError, match=message):
        cls(**arguments)
