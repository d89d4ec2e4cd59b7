"""Validation values of a training, as they are read while it runs."""

import pytest

from keras_dml.tuning.trials import Progress, Trial, TuningResult, read_progress


def read(tmp_path, text, column="val_map@r"):
    path = tmp_path / "history.csv"
    path.write_text(text)
    return read_progress([tmp_path], column)


def test_no_file_and_no_row_yet(tmp_path):
    assert read_progress([tmp_path], "val_map@r") == Progress()
    assert read(tmp_path, "stage,phase,epoch,val_map@r\n") == Progress()


def test_epochs_that_were_not_validated_are_left_out(tmp_path):
    history = read(
        tmp_path,
        "stage,phase,epoch,loss,seconds,val_map@r\n"
        "main,train,0,3.0,1.5,\n"
        "main,train,1,2.0,1.5,0.25\n"
        "main,train,2,nan,1.5,nan\n"
        "main,train,3,1.0,1.5,0.5\n"
        "main,train,4,1.0,1.5,0.4\n",
    )
    assert history.values == {1: 0.25, 3: 0.5, 4: 0.4}
    assert history.best == 0.5
    assert history.epochs == 5
    assert history.seconds == pytest.approx(7.5)


def test_the_last_stage_that_validates_decides(tmp_path):
    history = read(
        tmp_path,
        "stage,phase,epoch,val_map@r\n"
        "search,train,0,0.9\n"
        "middle,train,0,0.5\n"
        "middle,train,1,0.6\n"
        "final,train,0,\n",
    )
    assert history.best == 0.6
    assert list(history.values) == [0, 1, 2]


def test_another_column(tmp_path):
    text = "stage,phase,epoch,val_map@r\nmain,train,0,0.5\n"
    history = read(tmp_path, text, "val_recall@1")
    assert history.values == {}
    assert history.best is None
    assert history.epochs == 1


def test_a_trial_without_a_value_is_never_the_best():
    trials = [
        Trial(0, {}, "complete", None),
        Trial(1, {}, "pruned", 0.9),
        Trial(2, {}, "complete", -0.5),
        Trial(3, {}, "complete", -0.5),
    ]
    assert TuningResult("map@r", trials).best == trials[2]
