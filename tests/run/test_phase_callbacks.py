"""The callbacks of a phase, without training it."""

from keras_dml.run.phase_callbacks import replayed_drops


def test_drops_are_replayed_in_their_phase_with_their_factor():
    found = {"1": {"epochs": [2, 3], "factor": 0.5}}
    found["3"] = {"epochs": [4], "factor": 0.2}
    record = {"drops": found}
    assert replayed_drops(record, 0, one_epoch_late=False) == []
    (drops,) = replayed_drops(record, 1, one_epoch_late=True)
    assert (drops.epochs, drops.factor) == ([2, 3], 0.5)
    assert drops.author_off_by_one
    (drops,) = replayed_drops(record, 3, one_epoch_late=False)
    assert (drops.epochs, drops.factor) == ([4], 0.2)
    assert replayed_drops({}, 0, one_epoch_late=False) == []
    # As version 0.1 recorded them.
    (drops,) = replayed_drops({"drops": [2]}, 0, one_epoch_late=False)
    assert (drops.epochs, drops.factor) == ([2], 0.1)
