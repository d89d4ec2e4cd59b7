"""Rates that fall to zero when they are told."""

import keras
import pytest

from keras_dml.optimizers import DecayToZero


@pytest.mark.parametrize(
    "rate", [0.4, keras.optimizers.schedules.CosineDecay(0.4, 100)]
)
def test_a_saved_one_follows_the_same_rate(rate):
    decay = DecayToZero(rate, steps=4)
    saved = keras.saving.serialize_keras_object(decay)
    loaded = keras.saving.deserialize_keras_object(saved)
    for one in (decay, loaded):
        one.begin(3)
    for step in range(10):
        assert float(decay(step)) == float(loaded(step))
    assert float(decay(7)) == 0.0 < float(decay(6))


def test_one_saved_in_its_decay_goes_on():
    decay = DecayToZero(0.4, steps=4)
    decay.begin(3)
    saved = keras.saving.serialize_keras_object(decay)
    loaded = keras.saving.deserialize_keras_object(saved)
    rates = [[float(one(step)) for step in range(9)] for one in (decay, loaded)]
    assert rates[0] == rates[1]
    assert rates[0][7:] == [0.0, 0.0]


def test_a_file_of_before_it_knew_its_start_is_read():
    config = DecayToZero(0.4, steps=4).get_config()
    del config["start"]
    assert float(DecayToZero.from_config(config)(99)) == pytest.approx(0.4)


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="`steps`"):
        DecayToZero(0.1, 0)


@pytest.mark.parametrize("rate", [-0.1, "0.1", None, True])
def test_what_is_no_rate_is_refused(rate):
    with pytest.raises(ValueError, match="`learning_rate`.*`LearningRateSch"):
        DecayToZero(rate, 4)
