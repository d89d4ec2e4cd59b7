import keras

from keras_dml.optimizers import (
    PerVariable,
    follows_schedule,
    inner_optimizers,
)


def test_wrappers_are_opened():
    head, default = keras.optimizers.SGD(0.1), keras.optimizers.Adam(0.1)
    several = PerVariable(default, {"head/.*": head})
    assert inner_optimizers(default) == [default]
    assert inner_optimizers(several) == [head, default]
    wrapped = keras.optimizers.LossScaleOptimizer(several)
    assert inner_optimizers(wrapped) == [head, default]


def test_schedules_are_recognised():
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 10)
    assert follows_schedule(keras.optimizers.SGD(schedule))
    assert follows_schedule(keras.optimizers.SGD(tenth))
    assert not follows_schedule(keras.optimizers.SGD(0.1))


@keras.saving.register_keras_serializable(package="tests")
def tenth():
    return 0.1
