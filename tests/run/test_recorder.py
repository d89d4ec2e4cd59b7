from keras_dml.run.recorder import RunState


def test_a_phase_that_ended_early_counts_as_long_as_it_trained():
    """A later phase's step schedule goes on from there."""
    records = {"main": {"epochs": [7, 20]}, "search": {"epochs": [5, 40]}}
    state = RunState(stage=1, phase=1, records=records)
    assert state.epochs_before("main") == 7
    state.next_phase()
    assert state.epochs_before("main") == 27
    assert RunState().epochs_before("main") == 0
