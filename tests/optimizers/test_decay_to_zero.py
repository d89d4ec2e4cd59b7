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


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="`steps`"):
        DecayToZero(0.1, 0)
