import json

import keras
import numpy as np
import pytest

from keras_dml.callbacks import ReduceLROnPlateau
from keras_dml.optimizers import LearningRate, PerVariable
from tests.callbacks.small_trainer import build, drive, fit, per_variable


def rates(model):
    return list(LearningRate(model.optimizer).values().values())


def run(values, callback, optimizer=None, initial_epoch=0, trainer=None):
    trainer = trainer or build(optimizer)[0]
    return drive(trainer, [callback], values, initial_epoch, rates)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cooldown", [0, 1, 3])
def test_acts_as_the_one_of_keras(seed, cooldown):
    values = list(np.random.default_rng(seed).uniform(size=20))
    arguments = {"patience": 2, "factor": 0.5, "cooldown": cooldown}
    ours = run(values, ReduceLROnPlateau(**arguments))
    theirs = run(
        values,
        keras.callbacks.ReduceLROnPlateau(
            "val_recall@1", mode="max", **arguments
        ),
    )
    assert ours == theirs
    assert len(set(map(tuple, ours))) > 3


def test_every_optimizer_falls_and_the_drops_are_recorded(policy):
    callback = ReduceLROnPlateau(patience=2)
    found = run([0.5, 0.4, 0.4, 0.6, 0.6, 0.6], callback, per_variable())
    expected = [[0.5, 0.01]] * 2 + [[0.05, 0.001]] * 3 + [[0.005, 0.0001]]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    # The first epoch that is trained with the lower rate.
    assert callback.drops == [3, 6]


def test_smaller_may_be_better():
    callback = ReduceLROnPlateau(patience=1, mode="min")
    run([0.5, 0.4, 0.45], callback)
    assert callback.drops == [3]


def test_the_smallest_rate_ends_the_drops():
    callback = ReduceLROnPlateau(patience=1, factor=0.5, min_lr=0.04)
    found = run([0.5] * 5, callback)
    np.testing.assert_allclose(found[-1], [0.04], rtol=1e-6)
    assert callback.drops == [2, 3]


@pytest.mark.parametrize("boundary", [1, 2, 3, 4])
def test_a_resumed_training_equals_an_uninterrupted_one(boundary):
    values = [0.5, 0.4, 0.4, 0.4, 0.4, 0.45]
    whole = ReduceLROnPlateau(patience=2, cooldown=1)
    expected = run(values, whole)
    first = ReduceLROnPlateau(patience=2, cooldown=1)
    trainer, _ = build()
    run(values[:boundary], first, trainer=trainer)
    second = ReduceLROnPlateau(patience=2, cooldown=1)
    second.set_state(json.loads(json.dumps(first.get_state())))
    rest = run(values, second, initial_epoch=boundary, trainer=trainer)
    assert rest == expected[boundary:]
    assert second.get_state() == whole.get_state()


def test_rates_are_logged():
    trainer, _ = build(per_variable())
    history = fit(trainer, 1, [ReduceLROnPlateau("loss", mode="min")])
    assert history["learning_rate_proxies"] == [0.5]


@pytest.mark.parametrize(
    ("default", "head", "drops"),
    [(0.5, 0.02, [2, 3]), (0.01, 0.5, [2, 3])],
)
def test_optimizers_of_one_name_are_bounded_each(default, head, drops):
    """A drop counts also where the last of them, the default, has none."""
    optimizer = PerVariable(
        keras.optimizers.SGD(default), {"head/.*": keras.optimizers.SGD(head)}
    )
    trainer, _ = build(optimizer)
    worse = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: logs.update(worse=epoch)
    )
    plateau = ReduceLROnPlateau("worse", 0.1, 1, "min", min_lr=0.01)
    fit(trainer, 3, [worse, plateau])
    found = [float(one.learning_rate) for one in optimizer.optimizers]
    assert found == pytest.approx([0.01, 0.01])
    assert plateau.drops == drops


def test_a_missing_metric_warns():
    trainer, _ = build()
    with pytest.warns(UserWarning, match="monitor='val_recall@1', which no"):
        fit(trainer, 1, [ReduceLROnPlateau()])


def test_a_nan_is_never_the_best():
    callback = ReduceLROnPlateau(patience=2)
    run([float("nan"), 0.5, 0.6], callback)
    assert callback.get_state()["best"] == 0.6


def test_a_schedule_is_refused():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    with pytest.raises(ValueError, match="`ReduceLROnPlateau` changes"):
        run([0.5], ReduceLROnPlateau(), keras.optimizers.SGD(schedule))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"factor": 1.0}, "factor=1.0"),
        ({"patience": 0}, "patience=0"),
        ({"mode": "auto"}, "`mode` must be one of 'max', 'min'.*mode='auto'"),
        ({"min_delta": -1}, "min_delta=-1"),
        ({"cooldown": -1}, "`cooldown`.*cooldown=-1"),
        ({"min_lr": -1.0}, "`min_lr`.*min_lr=-1"),
        ({"min_lr": "a"}, "`min_lr`.*min_lr='a'"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        ReduceLROnPlateau(**arguments)
