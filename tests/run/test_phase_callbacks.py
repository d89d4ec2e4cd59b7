"""The callbacks of a phase, without training it."""

import numpy as np

from keras_dml.callbacks import EarlyStopping
from keras_dml.run.phase_callbacks import TimedEvaluation, replayed_drops
from keras_dml.run.timing import Timing


def test_the_last_epoch_of_a_tail_is_evaluated():
    """It decayed the rates for a network that could never be kept."""
    stopping = EarlyStopping(patience=1, tail=2, steps_per_epoch=5, epochs=20)
    data = (np.zeros((4, 2)), np.array([0, 0, 1, 1]))
    evaluation = TimedEvaluation(
        Timing(), stopping, lambda rows: rows, data, every=3, epochs=20
    )

    def due():
        return [epoch for epoch in range(20) if evaluation.is_due(epoch)]

    assert due() == [2, 5, 8, 11, 14, 17, 19]
    stopping.tail_epoch = 9
    assert due() == [2, 5, 8, 10, 11, 14, 17, 19]


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
