import keras
import numpy as np
import pytest

from keras_dml.callbacks import LearningRateDrops, ReduceLROnPlateau
from keras_dml.optimizers import LearningRate
from tests.callbacks.small_trainer import build, drive, fit, per_variable


def rates(model):
    return list(LearningRate(model.optimizer).values().values())


def run(callbacks, values=(0.5,) * 5, optimizer=None):
    trainer, _ = build(optimizer)
    return np.array(drive(trainer, callbacks, values, read=rates))


def test_drops_at_the_epochs():
    found = run([LearningRateDrops([3, 1])], optimizer=per_variable())
    expected = np.outer([1, 0.1, 0.1, 0.01, 0.01], [0.5, 0.01])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_authors_drop_one_epoch_later():
    found = run([LearningRateDrops([1, 3], author_off_by_one=True)])
    np.testing.assert_allclose(
        found[:, 0], [0.1, 0.1, 0.01, 0.01, 0.001], rtol=1e-5
    )


def test_replays_what_a_plateau_recorded():
    plateau = ReduceLROnPlateau(patience=1)
    found = run([plateau], [0.5, 0.4, 0.6, 0.5, 0.7])
    assert plateau.drops == [2, 4]
    replayed = run([LearningRateDrops(plateau.drops)])
    # A plateau acts at the end of an epoch, the replay at the next start.
    np.testing.assert_allclose(replayed[1:], found[:-1], rtol=1e-6)


def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path):
    whole, _ = build()
    path = str(tmp_path / "{epoch}.keras")
    save = keras.callbacks.ModelCheckpoint(path)
    fit(whole, 4, [LearningRateDrops([1, 2]), save])
    for boundary in (1, 2, 3):
        model = keras.saving.load_model(tmp_path / f"{boundary}.keras")
        fit(model, 4, [LearningRateDrops([1, 2])], initial_epoch=boundary)
        for a, b in zip(whole.get_weights(), model.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_schedule_is_refused():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.5)
    with pytest.raises(ValueError, match="`LearningRateDrops` changes"):
        run([LearningRateDrops([1])], optimizer=keras.optimizers.SGD(schedule))


@pytest.mark.parametrize(
    "epochs, factor, message",
    [
        ([-1], 0.1, "epochs=-1"),
        ([1.5], 0.1, r"1.5"),
        (12, 0.1, "`epochs` must be a list of integers.*epochs=12"),
        ("12", 0.1, "`epochs` must be a list of integers.*epochs='12'"),
        ([1], 2, "factor=2"),
    ],
)
def test_arguments_are_checked(epochs, factor, message):
    with pytest.raises(ValueError, match=message):
        LearningRateDrops(epochs, factor)


def test_a_word_is_no_boolean():
    with pytest.raises(ValueError, match="`author_off_by_one` must be True"):
        LearningRateDrops([1], author_off_by_one="no")
