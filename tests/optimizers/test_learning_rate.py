import keras
import pytest

from keras_dml.optimizers import (
    LearningRate,
    PerVariable,
    follows_schedule,
    inner_optimizers,
)
from tests.callbacks.small_trainer import per_variable


def wrap(optimizer):
    return keras.optimizers.LossScaleOptimizer(optimizer)


def test_one_optimizer():
    rate = LearningRate(keras.optimizers.SGD(0.5))
    assert rate.values() == {"learning_rate": 0.5}
    rate.multiply(0.5)
    assert rate.values() == {"learning_rate": 0.25}


@pytest.mark.parametrize("holder", [lambda optimizer: optimizer, wrap])
def test_every_inner_optimizer(holder):
    optimizer = per_variable()
    rate = LearningRate(holder(optimizer))
    rate.multiply(0.5)
    assert rate.values() == pytest.approx(
        {"learning_rate_backbone": 0.005, "learning_rate_proxies": 0.25}
    )
    assert float(optimizer.default.learning_rate) == pytest.approx(0.005)


def test_schedules_are_read_but_refused_where_they_would_be_set():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.1)
    rate = LearningRate(keras.optimizers.SGD(schedule, name="head"))
    assert rate.values() == {"learning_rate": 0.5}
    with pytest.raises(ValueError, match=r"`HeatUp` changes.*\['head'\]"):
        rate.require_settable("HeatUp")
    LearningRate(keras.optimizers.SGD(0.5)).require_settable("HeatUp")


def test_wrappers_are_opened():
    head, default = keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.1)
    several = PerVariable(default, {"head/.*": head})
    assert inner_optimizers(default) == [default]
    assert inner_optimizers(several) == [head, default]
    wrapped = keras.optimizers.LossScaleOptimizer(several)
    assert inner_optimizers(wrapped) == [head, default]


def test_schedules_are_recognized():
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 10)
    assert follows_schedule(keras.optimizers.SGD(schedule))
    assert follows_schedule(keras.optimizers.SGD(tenth))
    assert not follows_schedule(keras.optimizers.SGD(0.1))


@keras.saving.register_keras_serializable(package="tests")
def tenth():
    return 0.1
