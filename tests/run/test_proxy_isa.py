"""A run with Proxy-ISA: its epochs are counted, its memory is resumed."""

import numpy as np
import pytest

from keras_dml import callbacks
from keras_dml.config import resolve
from keras_dml.run import fit as train
from tests.run.stopping import (
    StoppedError,
    assert_same_weights,
    last_checkpoint,
)


def settings():
    constant = [
        f"optimizer.{group}.schedule=constant"
        for group in ("backbone", "head", "proxies")
    ]
    return resolve(
        "proxy_isa",
        "digits",
        flags={"model": {"backbone": "small_cnn", "dim": 16}},
        overrides=[
            "stages=[{phases: [{name: first, epochs: 1}, "
            "{name: second, epochs: 3}]}]",
            *constant,
            "sampling.steps_per_epoch=4",
            "model.proxies.sample_aware.memory_size=100",
            "model.proxies.sample_aware.memory_epoch=1",
            "model.proxies.sample_aware.filter_epoch=2",
        ],
    )


@pytest.mark.slow
def test_stopped_and_resumed_ends_with_the_same_weights(tmp_path, monkeypatch):
    """Stopped in its fourth epoch, with memory and filter on."""
    train.fit(settings(), tmp_path / "whole")
    expected = last_checkpoint(tmp_path / "whole")

    def stop_in_epoch_3(self, batch, logs=None):
        if int(self._layers()[0].epochs.numpy()) == 3 and batch == 2:
            raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr(
            callbacks.CountEpochs, "on_train_batch_end", stop_in_epoch_3
        )
        with pytest.raises(StoppedError):
            train.fit(settings(), tmp_path / "part")
    assert not (tmp_path / "part" / "metrics.json").exists()
    train.fit(settings(), tmp_path / "part", resume=True)
    actual = last_checkpoint(tmp_path / "part")

    assert_same_weights(actual, expected)
    values = dict(
        zip(actual.paths["model"], actual.values["model"], strict=True)
    )
    assert values["proxies/epochs"] == 4
    assert np.all(values["proxies/memory/labels"] >= 0)
    assert np.any(values["proxies/learned"] < 1)
