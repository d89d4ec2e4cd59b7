"""Writes down every epoch: history, the best weights, a checkpoint."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from keras_dml import distribute
from keras_dml.callbacks.learning_rate import LearningRate
from keras_dml.layers import ScaledLogits
from keras_dml.run.checkpoint import load_checkpoint, save_checkpoint
from keras_dml.run.folder import RunFolder
from keras_dml.run.preemption import Preemption
from keras_dml.run.state import RunState


class RunRecorder(keras.callbacks.Callback):
    """Saves all that `--resume` needs at the end of every epoch.

    When the run is told to stop it saves in the middle of one, and raises
    `PreemptedError`. Of several workers all must have one; the chief writes.

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
        steps: Number of steps of an epoch.
        preemption: Whether the run was told to stop. Defaults to `None`:
            never.
        stops: Function that says after a step whether to stop, the same on
            all workers. Defaults to `None`: what `preemption` says.
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
        steps: int = 0,
        preemption: Preemption | None = None,
        stops: Callable[[], bool] | None = None,
    ) -> None:
        super().__init__()
        self.folder = folder
        self.state = state
        self.labels = labels
        self.epochs = epochs
        self.monitor = monitor
        self.stateful = stateful
        self.steps = steps
        self.preemption = preemption or Preemption()
        self.stops = stops or self._requested
        self._started = 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self._started = time.perf_counter()
        if self.state.step:
            self._restore()

    def on_train_batch_end(self, batch, logs=None):
        done = self.state.step + batch + 1
        # The end of an epoch saves anyway.
        if done < self.steps and self.stops():
            self._stop_after(done)

    def on_epoch_end(self, epoch, logs=None):
        logs = {key: float(value) for key, value in (logs or {}).items()}
        state = self.state
        seconds = time.perf_counter() - self._started
        state.seconds += seconds
        state.epoch = epoch + 1
        state.step = 0
        state.phase_done = state.epoch >= self.epochs or bool(
            self.model.stop_training
        )
        state.callbacks = self._callback_states()
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
            self.folder.last_checkpoint, self._groups(), state.to_dict()
        )
        if distribute.is_chief():
            self.folder.write_history(state.history)
        if any(distribute.gather(self._requested())):
            self.preemption.stop(f"the end of epoch {epoch}")

    def _requested(self):
        return self.preemption.requested

    def _groups(self):
        return {
            "model": self.model.variables,
            "optimizer": self.model.optimizer.variables,
        }

    def _callback_states(self):
        return {
            type(callback).__name__: callback.get_state()
            for callback in self.stateful
        }

    def _stop_after(self, step):
        state = self.state
        state.seconds += time.perf_counter() - self._started
        state.step = step
        state.callbacks = self._callback_states()
        groups = {**self._groups(), "metrics": self.model.metrics_variables}
        save_checkpoint(self.folder.last_checkpoint, groups, state.to_dict())
        self.preemption.stop(f"epoch {state.epoch}, step {step}")

    def _restore(self):
        """Puts back the middle of an epoch.

        Here, because the metrics have just been reset, and because the other
        callbacks have begun an epoch that had begun before.
        """
        last = load_checkpoint(self.folder.last_checkpoint)
        groups = {**self._groups(), "metrics": self.model.metrics_variables}
        for name, variables in groups.items():
            last.restore(name, variables)

    def _keep_if_best(self, epoch, logs):
        if self.monitor is None or self.monitor not in logs:
            return
        value = logs[self.monitor]
        if self.state.best is None or value > self.state.best:
            self.state.best = value
            self.state.best_phase = self.state.phase
            self.state.best_epoch = epoch
            self.state.best_metrics = {
                name.removeprefix("val_"): value
                for name, value in logs.items()
                if name.startswith("val_")
            }
            save_checkpoint(
                self.folder.best_checkpoint,
                {"model": self.model.variables},
            )


def _temperature(model: keras.Model) -> dict[str, float]:
    layers = [x for x in model.layers if isinstance(x, ScaledLogits)]
    if not layers:
        return {}
    return {"temperature": 1.0 / float(ops.convert_to_numpy(layers[0].scale))}
