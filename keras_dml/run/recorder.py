"""Writes down every epoch: history, the best weights, a checkpoint."""

import time
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_dml.callbacks.learning_rate import LearningRate
from keras_dml.layers import ScaledLogits
from keras_dml.run.checkpoint import save_checkpoint
from keras_dml.run.folder import RunFolder
from keras_dml.run.state import RunState


class RunRecorder(keras.callbacks.Callback):
    """Saves all that `--resume` needs at the end of every epoch.

    It must come last in the list of callbacks, so that their states are those
    of the finished epoch. Best weights are written before the checkpoint: a
    kill between the two repeats the epoch and writes the same file again.

    Args:
        folder: The run folder.
        state: The state of the run; changed in place.
        labels: Columns that open every history row, such as stage and phase.
        epochs: Number of epochs of the phase.
        monitor: Key in the logs that chooses the best epoch, larger is
            better; `None` keeps no best weights.
        stateful: Callbacks with `get_state` whose state is saved too.
    """

    def __init__(
        self,
        folder: RunFolder,
        state: RunState,
        *,
        labels: dict[str, Any],
        epochs: int,
        monitor: str | None = None,
        stateful: Sequence[Any] = (),
    ) -> None:
        super().__init__()
        self.folder = folder
        self.state = state
        self.labels = labels
        self.epochs = epochs
        self.monitor = monitor
        self.stateful = stateful
        self._started = 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self._started = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        logs = {key: float(value) for key, value in (logs or {}).items()}
        state = self.state
        seconds = time.perf_counter() - self._started
        state.seconds += seconds
        state.epoch = epoch + 1
        state.phase_done = state.epoch >= self.epochs or bool(
            self.model.stop_training
        )
        state.callbacks = {
            type(callback).__name__: callback.get_state()
            for callback in self.stateful
        }
        state.history.append(
            {
                **self.labels,
                "epoch": epoch,
                **logs,
                **LearningRate(self.model.optimizer).values(),
                **_temperature(self.model),
                "seconds": round(seconds, 2),
            }
        )
        self._keep_if_best(epoch, logs)
        save_checkpoint(
            self.folder.last_checkpoint,
            {
                "model": self.model.variables,
                "optimizer": self.model.optimizer.variables,
            },
            state.to_dict(),
        )
        self.folder.write_history(state.history)

    def _keep_if_best(self, epoch, logs):
        if self.monitor is None or self.monitor not in logs:
            return
        value = logs[self.monitor]
        if self.state.best is None or value > self.state.best:
            self.state.best = value
            self.state.best_phase = self.state.phase
            self.state.best_epoch = epoch
            save_checkpoint(
                self.folder.best_checkpoint,
                {"model": self.model.variables},
            )


def _temperature(model: keras.Model) -> dict[str, float]:
    layers = [x for x in model.layers if isinstance(x, ScaledLogits)]
    if not layers:
        return {}
    return {"temperature": 1.0 / float(ops.convert_to_numpy(layers[0].scale))}
