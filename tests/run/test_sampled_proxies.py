"""A run whose steps see a sample of the classes: it resumes bit for bit."""

import keras
import pytest

from keras_dml.config import resolve
from keras_dml.run import fit as train
from keras_dml.run import training
from tests.run.stopping import (
    StoppedError,
    assert_same_weights,
    last_checkpoint,
)


def settings():
    return resolve(
        "norm_softmax",
        "digits",
        flags={"model": {"backbone": "small_cnn", "dim": 16}},
        overrides=[
            "model.proxies.sample=0.5",
            "sampling={kind: balanced, batch_size: 24, classes: 3, images: 8, "
            "steps_per_epoch: 4}",
            "stages.0.phases.0.epochs=2",
        ],
    )


@pytest.mark.slow
def test_stopped_and_resumed_ends_with_the_same_weights(tmp_path, monkeypatch):
    # What comes before and after training is not what is tested here.
    monkeypatch.setattr(training, "finish", lambda *arguments: {})
    monkeypatch.setattr(
        training.Training, "_measure_baselines", lambda self: None
    )
    train.fit(settings(), tmp_path / "whole")
    expected = last_checkpoint(tmp_path / "whole")
    original = keras.callbacks.TensorBoard.on_epoch_begin

    def stop_in_epoch_1(self, epoch, logs=None):
        if epoch == 1:
            raise StoppedError
        original(self, epoch, logs)

    with monkeypatch.context() as patch:
        patch.setattr(
            keras.callbacks.TensorBoard, "on_epoch_begin", stop_in_epoch_1
        )
        with pytest.raises(StoppedError):
            train.fit(settings(), tmp_path / "part")
    train.fit(settings(), tmp_path / "part", resume=True)
    actual = last_checkpoint(tmp_path / "part")
    assert_same_weights(actual, expected)
    values = dict(
        zip(actual.paths["optimizer"], actual.values["optimizer"], strict=True)
    )
    (steps,) = (v for path, v in values.items() if path.endswith("_steps"))
    # Eight steps of five classes each.
    assert steps.sum() == 40
    assert 0 < steps.min() < steps.max() <= 8
    log = (tmp_path / "part" / "log.txt").read_text()
    assert "RowLazyAdam" in log
