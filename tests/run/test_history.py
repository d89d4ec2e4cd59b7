import numpy as np
import pytest

from keras_dml.errors import UsageError
from keras_dml.run.history import read_history

TEXT = """stage,phase,epoch,loss,seconds,val_map@r,learning_rate_head
search,warm,0,3.0,1.0,,0.1
search,train,0,2.5,1.0,0.9,0.1
search,train,1,2.0,1.0,,0.05
main,train,0,1.5,1.0,0.4,0.1
main,train,1,1.0,1.0,0.5,0.01
main,train,2,0.9,1.0,0.5,0.01
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(TEXT)
    return path


def test_epochs_are_counted_through_all_phases(path):
    history = read_history(path)
    assert len(history) == 6
    assert history.starts == [
        (0, "search/warm"),
        (1, "search/train"),
        (3, "main/train"),
    ]
    np.testing.assert_array_equal(
        history.columns["val_map@r"], [np.nan, 0.9, np.nan, 0.4, 0.5, 0.5]
    )
    assert "stage" not in history.columns


def test_columns_without_a_number_are_left_out(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text("stage,phase,epoch,loss,val_mrr\nmain,train,0,1.0,\n")
    history = read_history(path)
    assert set(history.starting_with("loss", "val_")) == {"loss"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"\x89PNG\r\n", "can't decode"),
        (b"a,b\n1,2\n", "the columns"),
        (TEXT.encode() + b"main,train,3,0.9,1,1,1,1\n", "a line of more"),
    ],
)
def test_another_table_is_refused(path, content, reason):
    path.write_bytes(content)
    with pytest.raises(UsageError, match=f"history.csv must be.*{reason}"):
        read_history(path)


def test_no_file_and_no_epoch(tmp_path):
    assert len(read_history(tmp_path / "absent.csv")) == 0
    path = tmp_path / "history.csv"
    path.write_text("stage,phase,epoch,loss\n")
    assert len(read_history(path)) == 0


def test_the_kept_epoch_is_the_first_best_of_the_last_stage(path):
    history = read_history(path)
    assert history.best_epoch("val_map@r") == 4
    assert history.best_epoch("val_recall@1") is None


def test_the_last_stage_that_validates_has_the_best_epoch(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text(
        "stage,phase,epoch,val_mrr\n"
        "search,train,0,0.9\nmain,train,0,0.5\nmain,train,1,0.6\n"
        "final,train,0,\n"
    )
    assert read_history(path).best_epoch("val_mrr") == 2
    assert read_history(path).values("val_mrr") == {0: 0.9, 1: 0.5, 2: 0.6}


def test_epochs_tell_how_long_they_took(path, tmp_path):
    assert read_history(path).seconds == 6.0
    assert read_history(tmp_path / "absent.csv").seconds == 0.0


def test_a_metric_rises_if_the_last_of_several_numbers_is_the_best(path):
    assert not read_history(path).rises("val_map@r")
    path.write_text(TEXT.replace("1.0,0.5,0.01", "1.0,0.45,0.01", 1))
    assert read_history(path).rises("val_map@r")
    assert not read_history(path).rises("absent")
    path.write_text("\n".join(TEXT.splitlines()[:3]))
    assert not read_history(path).rises("val_map@r")
