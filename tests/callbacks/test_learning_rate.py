import keras
import pytest

from keras_dml.callbacks import LearningRate
from tests.callbacks.small_trainer import per_variable


def wrap(optimizer):
    return keras.optimizers.LossScaleOptimizer(optimizer)


def test_one_optimizer():
    rate = LearningRate(keras.optimizers.SGD(0.5))
    assert rate.values() == {"learning_rate": 0.5}
    assert rate.multiply(0.5)
    assert rate.values() == {"learning_rate": 0.25}


@pytest.mark.parametrize("holder", [lambda optimizer: optimizer, wrap])
def test_every_inner_optimizer(holder):
    optimizer = per_variable()
    rate = LearningRate(holder(optimizer))
    assert rate.multiply(0.5)
    assert rate.values() == pytest.approx(
        {"learning_rate_backbone": 0.005, "learning_rate_proxies": 0.25}
    )
    assert float(optimizer.default.learning_rate) == pytest.approx(0.005)


def test_minimum():
    rate = LearningRate(keras.optimizers.SGD(0.5))
    assert rate.multiply(0.1, minimum=0.25)
    assert rate.values() == {"learning_rate": 0.25}
    assert not rate.multiply(0.1, minimum=0.25)
    assert not rate.multiply(0.1, minimum=1.0)
    assert rate.values() == {"learning_rate": 0.25}


def test_schedules_are_read_but_refused_where_they_would_be_set():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.1)
    rate = LearningRate(keras.optimizers.SGD(schedule, name="head"))
    assert rate.values() == {"learning_rate": 0.5}
    with pytest.raises(ValueError, match=r"`HeatUp` changes.*\['head'\]"):
        rate.require_settable("HeatUp")
    LearningRate(keras.optimizers.SGD(0.5)).require_settable("HeatUp")
