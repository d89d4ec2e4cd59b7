"""The phases of a stage, without training them."""

import pytest

from keras_dml.callbacks import LearningRateDrops
from keras_dml.run.data import StageData
from keras_dml.run.folder import RunFolder
from keras_dml.run.phases import StageTrainer
from keras_dml.run.recorder import RunState
from tests.run import made_up


def trainer_of(config, data, state, tmp_path, stage=None):
    return StageTrainer(
        config,
        stage or config.stages[0],
        data,
        made_up.models(),
        RunFolder(tmp_path),
        state,
    )


@pytest.mark.parametrize("validates", [True, False])
def test_epochs_of_a_refit_are_left_only_where_one_may_follow(
    tmp_path, validates
):
    """Where nothing validates, half of the time left never came."""
    config = made_up.settings(
        "refit=true", "stages=[{phases: [{epochs: 2}, {name: b, epochs: 3}]}]"
    )
    data = made_up.stage()
    if not validates:
        data = StageData(data.fit, None)
    trainer = trainer_of(config, data, RunState(), tmp_path)
    assert trainer._epochs_later() == 3 + 5 * validates


@pytest.mark.parametrize("best", [None, 3])
def test_a_replay_of_what_did_not_validate_has_its_own_length(tmp_path, best):
    """It ended after its first epoch."""
    config = made_up.settings(
        "stages=[{name: one, phases: [{epochs: 9}]}, "
        "{name: two, replay: one, phases: [{epochs: 9}]}]"
    )
    found = {} if best is None else {"best_epoch": best, "best_phase": 0}
    state = RunState(stage=1, records={"one": {"epochs": [9], **found}})
    stage = config.stages[1]
    trainer = trainer_of(config, made_up.stage(), state, tmp_path, stage)
    assert trainer._epochs(stage.phases[0]) == (9 if best is None else 4)


@pytest.mark.parametrize("phase", [0, 1])
def test_the_refit_lowers_the_rates_as_what_was_kept(tmp_path, phase):
    """They stayed at the full ones, also where a plateau had lowered them."""
    config = made_up.settings(
        "refit=true",
        "stages=[{phases: [{epochs: 2}, {name: b, epochs: 3, plateau: {}}]}]",
    )
    record = {"drops": {"1": {"epochs": [1, 2], "factor": 0.5}}}
    state = RunState(stage=1, phase=phase, records={"main": record})
    data = StageData(made_up.stage().fit, None)
    stage = config.trainings[-1]
    trainer = trainer_of(config, data, state, tmp_path, stage)
    listed = trainer._callbacks(stage.phases[phase], 3)
    found = [one for one in listed if isinstance(one, LearningRateDrops)]
    assert [(one.epochs, one.factor) for one in found] == [
        ([1, 2], 0.5)
    ] * phase
