import json
import operator

import keras
import numpy as np
import pytest

from keras_dml.callbacks import EarlyStopping
from keras_dml.optimizers import DecayToZero
from tests.callbacks.small_trainer import Record, build, drive, fit


def run(values, callback, initial_epoch=0):
    trainer, _ = build()
    epochs = drive(trainer, [callback], values, initial_epoch)
    return initial_epoch + len(epochs)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("start", [0, 2])
def test_stops_as_the_one_of_keras(seed, start):
    values = list(np.random.default_rng(seed).uniform(size=12))
    arguments = {"patience": 3, "mode": "max", "start_from_epoch": start}
    ours = EarlyStopping("val_recall@1", **arguments)
    theirs = keras.callbacks.EarlyStopping("val_recall@1", **arguments)
    assert run(values, ours) == run(values, theirs)
    assert ours.best_epoch == theirs.best_epoch
    assert ours.best == theirs.best


def test_the_last_epoch_is_noted():
    callback = EarlyStopping(patience=2)
    assert run([0.5, 0.6, 0.5, 0.5, 0.9], callback) == 4
    assert callback.stopped_epoch == 3
    assert (callback.best, callback.best_epoch) == (0.6, 1)


@pytest.mark.parametrize("boundary", [1, 2, 3])
def test_a_resumed_training_stops_where_an_uninterrupted_one_does(boundary):
    values = [0.5, 0.6, 0.5, 0.5, 0.5, 0.9]
    whole = EarlyStopping(patience=3)
    epochs = run(values, whole)
    first = EarlyStopping(patience=3)
    run(values[:boundary], first)
    second = EarlyStopping(patience=3)
    second.set_state(json.loads(json.dumps(first.get_state())))
    assert run(values, second, initial_epoch=boundary) == epochs == 5
    assert second.get_state() == whole.get_state()


def test_stops_a_fit():
    trainer, _ = build()
    callback = EarlyStopping("loss", patience=1, mode="max")
    assert len(fit(trainer, 9, [callback])["loss"]) == 2


def test_a_missing_metric_warns():
    trainer, _ = build()
    with pytest.warns(UserWarning, match="monitor='val_recall@1', which no"):
        fit(trainer, 1, [EarlyStopping()])


@pytest.mark.parametrize(("value", "start"), [(0.5, 10), (float("nan"), 0)])
def test_a_metric_that_never_counted_is_not_called_missing(value, start):
    """A warning would be an error."""
    callback = EarlyStopping(start_from_epoch=start)
    callback.set_model(keras.Model())
    callback.on_train_begin()
    callback.on_epoch_end(0, {"val_recall@1": value})
    callback.on_epoch_end(1, {})
    callback.on_train_end()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"patience": 0}, "patience=0"),
        ({"mode": "up"}, "mode='up'"),
        ({"start_from_epoch": -1}, "`start_from_epoch`.*=-1"),
        ({"tail": -3, "steps_per_epoch": 2}, "`tail`.*tail=-3"),
        ({"tail": 2.5, "steps_per_epoch": 2}, "`tail`.*tail=2.5"),
        ({"tail": 2, "steps_per_epoch": 0}, "`steps_per_epoch`.*=0"),
        ({"epochs": 0}, "`epochs`.*epochs=0"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        EarlyStopping(**arguments)


def test_the_state_of_version_0_1_goes_on():
    callback = EarlyStopping(patience=2)
    state = {"best": 0.6, "best_epoch": 1, "wait": 1, "stopped_epoch": None}
    callback.set_state(state)
    assert run([0.5, 0.6, 0.5, 0.5], callback, initial_epoch=3) == 4
    assert callback.stopped_epoch == 3


def test_a_nan_is_never_the_best():
    callback = EarlyStopping(patience=3)
    run([float("nan"), 0.5, 0.4], callback)
    assert (callback.best, callback.best_epoch) == (0.5, 1)


def test_a_second_fit_has_not_stopped_yet():
    callback = EarlyStopping(patience=2)
    assert run([0.5, 0.4, 0.4], callback) == 3
    assert callback.stopped_epoch == 2
    assert run([0.0, 0.0, 0.0, 0.6], callback, initial_epoch=3) == 4
    assert callback.stopped_epoch == 0
    assert (callback.best, callback.best_epoch) == (0.6, 3)


def test_epochs_without_a_validation_do_not_count():
    """And cause no warning, which would be an error."""
    trainer, _ = build()

    def validate(epoch, logs):
        if epoch % 2:
            logs["val_recall@1"] = 0.5

    validation = keras.callbacks.LambdaCallback(on_epoch_end=validate)
    stop = EarlyStopping(patience=2)
    history = fit(trainer, 20, [validation, stop])
    assert len(history["loss"]) == 6
    assert stop.get_state()["wait"] == 2


class Told(keras.callbacks.Callback):
    """Gives the values of the metric."""

    def __init__(self, values):
        super().__init__()
        self.given = values

    def on_epoch_end(self, epoch, logs=None):
        logs["val_recall@1"] = self.given[epoch]


VALUES = [0.5, 0.6, 0.5, 0.5, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]
STEPS = 3


def decaying():
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 30)
    return keras.optimizers.Adam(DecayToZero(schedule, 2 * STEPS))


def with_tail(**arguments):
    return EarlyStopping(patience=2, tail=2, steps_per_epoch=STEPS, **arguments)


def trained(trainer, stop, epochs=10, initial_epoch=0):
    rates = Record(lambda model: float(model.optimizer.learning_rate))
    fit(trainer, epochs, [Told(VALUES), stop, rates], initial_epoch)
    return rates.values


def test_the_rates_fall_to_zero_before_the_stop():
    """Epoch 4 is the second without a gain; a cosine would be at half."""
    trainer, _ = build(decaying())
    stop = with_tail()
    rates = trained(trainer, stop)
    cosine = [0.1 * (1 + np.cos(np.pi * at / 10)) / 2 for at in range(1, 5)]
    expected = [*cosine, cosine[3] / 2, 0.0]
    np.testing.assert_allclose(rates, expected, atol=1e-6)
    assert (stop.tail_epoch, stop.stopped_epoch) == (4, 5)
    assert (stop.best, stop.best_epoch) == (0.9, 4)


def test_a_tail_that_is_not_reached_changes_no_bit():
    values = []
    for optimizer in (
        decaying(),
        keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.1, 30)),
    ):
        trainer, _ = build(optimizer)
        fit(trainer, 3)
        values.append([np.array(one) for one in trainer.variables])
    for one, other in zip(*values, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("boundary", [2, 4, 5])
def test_a_tail_is_resumed_bit_by_bit(boundary):
    whole, _ = build(decaying())
    trained(whole, with_tail())
    first, _ = build(decaying())
    stop = with_tail()
    trained(first, stop, boundary)
    second, _ = build(decaying())
    second.optimizer.build(second.trainable_variables)
    for part in ("variables", "optimizer.variables"):
        get = operator.attrgetter(part)
        for old, new in zip(get(first), get(second), strict=True):
            new.assign(old)
    again = with_tail()
    again.set_state(json.loads(json.dumps(stop.get_state())))
    trained(second, again, initial_epoch=boundary)
    for one, other in zip(whole.variables, second.variables, strict=True):
        np.testing.assert_array_equal(one, other)


def test_no_tail_begins_where_the_schedule_ends_itself():
    """The last two epochs of the cosine are its own tail."""
    trainer, _ = build(decaying())
    rates = trained(trainer, with_tail(epochs=6), 6)
    assert len(rates) == 6
    assert rates[-1] > 0


def test_a_tail_needs_rates_that_can_decay():
    trainer, _ = build()
    with pytest.raises(ValueError, match="rate is a `DecayToZero`"):
        trained(trainer, with_tail())
    with pytest.raises(ValueError, match="`tail` needs `steps_per_epoch`"):
        EarlyStopping(tail=2)


def test_the_tail_begins_at_the_step_of_the_optimizer():
    """After a second `fit` the product of epochs and steps lies far back."""
    trainer, _ = build(keras.optimizers.SGD(DecayToZero(0.1, 2 * STEPS)))
    fit(trainer, 8)
    stop = with_tail()
    rates = trained(trainer, stop)
    np.testing.assert_allclose(rates, [0.1] * 4 + [0.05, 0.0], atol=1e-6)
    assert stop.tail_steps == [(8 + 4) * STEPS]


@pytest.mark.parametrize("kept", [True, False])
def test_a_resumed_run_has_the_same_tail(kept):
    """States of before the steps were kept begin at the product."""
    trainer, _ = build(keras.optimizers.SGD(DecayToZero(0.1, 2 * STEPS)))
    trainer.optimizer.build(trainer.trainable_variables)
    trainer.optimizer.iterations.assign(20)
    stop = with_tail()
    for epoch, value in enumerate(VALUES[:4]):
        stop.set_model(trainer)
        stop.on_epoch_end(epoch, {"val_recall@1": value})
    state = json.loads(json.dumps(stop.get_state()))
    assert state["tail_steps"] == [20]
    if not kept:
        del state["tail_steps"]
    other, _ = build(keras.optimizers.SGD(DecayToZero(0.1, 2 * STEPS)))
    again = with_tail()
    again.set_state(state)
    again.set_model(other)
    again.on_train_begin()
    schedule = other.optimizer._learning_rate
    assert schedule.get_config()["start"] == (20 if kept else 4 * STEPS)


def test_a_tail_of_replicas(strategy):
    with strategy.scope():
        trainer, _ = build(keras.optimizers.SGD(DecayToZero(0.1, 2 * STEPS)))
        trainer.optimizer.build(trainer.trainable_variables)
    stop = with_tail()
    stop.set_model(trainer)
    for epoch, value in enumerate(VALUES[:4]):
        stop.on_epoch_end(epoch, {"val_recall@1": value})
    assert stop.tail_steps == [0]
