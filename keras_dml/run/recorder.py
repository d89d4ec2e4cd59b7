"""Keeps the state of a run, and records every epoch."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import keras
from keras import ops
from pydantic import NonNegativeInt, TypeAdapter

from keras_dml import distribute
from keras_dml.layers import ScaledLogits
from keras_dml.optimizers import LearningRate
from keras_dml.run.checkpoint import load_checkpoint, save_checkpoint
from keras_dml.run.folder import RunFolder
from keras_dml.run.preemption import Preemption


@dataclass
class RunState:
    """Holds the position and the records of a run, as values for JSON.

    Attributes:
        stage: Number of the current stage.
        phase: Number of the current phase of the stage.
        epoch: The next epoch of the phase.
        step: The next step of the epoch; 0 unless the epoch was interrupted.
        phase_done: Whether the phase has ended, as planned or early.
        best: The best validation value of the stage so far.
        best_phase: The phase of that value.
        best_epoch: The epoch of that value within its phase.
        best_metrics: All validation metrics of that epoch.
        seconds: Training time so far.
        history: One row per finished epoch.
        records: Per finished stage, its learning rate drops and best epoch.
        baselines: Results before training, by name.
        shrinkage: The shrinkage of the whitening that the head starts as.
        interpolation: What `interpolate` chose for the stage; empty without.
        callbacks: State of the callbacks of the phase, by class name.
        images: What `check_begun_with` says of the images; empty in the runs of
            version 0.1.
    """

    stage: NonNegativeInt = 0
    phase: NonNegativeInt = 0
    epoch: NonNegativeInt = 0
    step: NonNegativeInt = 0
    phase_done: bool = False
    best: float | None = None
    best_phase: NonNegativeInt = 0
    best_epoch: NonNegativeInt = 0
    best_metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)
    records: dict[str, dict[str, Any]] = field(default_factory=dict)
    baselines: dict[str, dict[str, float]] = field(default_factory=dict)
    shrinkage: float | None = None
    interpolation: dict[str, Any] = field(default_factory=dict)
    callbacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Returns the state that `to_dict` gave.

        Raises:
            ValueError: If a value is unknown, negative or of another type.
        """
        unknown = values.keys() - {one.name for one in dataclasses.fields(cls)}
        if unknown:
            raise ValueError(f"unknown values {sorted(unknown)[:4]}")
        return TypeAdapter(cls).validate_python(values)

    def epochs_before(self, stage: str) -> int:
        """Counts the epochs of earlier phases, which may have ended early.

        Args:
            stage: Name of the current stage.
        """
        trained = self.records.get(stage, {}).get("epochs", [])
        return sum(trained[: self.phase])

    def next_phase(self) -> None:
        """Moves on to the next phase."""
        self.phase += 1
        self.epoch = 0
        self.step = 0
        self.phase_done = False
        self.callbacks = {}

    def next_stage(self) -> None:
        """Moves on to the next stage."""
        self.next_phase()
        self.stage += 1
        self.phase = 0
        self.best = None
        self.best_phase = self.best_epoch = 0
        self.best_metrics = {}

    def improves(self, value: float) -> bool:
        """Whether a validation value is the best of the stage so far."""
        return self.best is None or value > self.best

    def to_dict(self) -> dict[str, Any]:
        """Returns the state as plain values."""
        return dataclasses.asdict(self)


class RunRecorder(keras.callbacks.Callback):
    """Saves everything that resuming needs at the end of every epoch.

    If the run must stop, it saves in the middle of an epoch and raises
    `PreemptedError`. Every worker must have this callback; the chief writes.

    It must be the last callback, so that it saves the states of the others
    after the epoch. It writes the best weights before the checkpoint: after a
    kill between the two, the resumed run repeats the epoch and writes the same
    file again.

    Args:
        folder: The run folder.
        state: The state of the run; changed in place.
        labels: First columns of every history row, such as stage and phase.
        epochs: Number of epochs of the phase.
        steps: Number of steps of an epoch.
        preemption: `Preemption` that says whether the run must stop.
        monitor: Key in the logs that chooses the best epoch (larger is
            better). Defaults to `None`, which keeps no best weights.
        stateful: Callbacks with `get_state` whose state is saved too. Defaults
            to none.
        stops: Function that returns after a step whether to stop, with the
            same result on all workers. Defaults to `None`, which asks
            `preemption`.
    """

    def __init__(
        self,
        folder: RunFolder,
        state: RunState,
        *,
        labels: dict[str, Any],
        epochs: int,
        steps: int,
        preemption: Preemption,
        monitor: str | None = None,
        stateful: Sequence[Any] = (),
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
        self.preemption = preemption
        self.stops = stops or self._requested
        self._started = 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self._started = time.perf_counter()
        if self.state.step:
            self._restore()

    def on_train_batch_end(self, batch, logs=None):
        done = self.state.step + batch + 1
        # After the last step, `on_epoch_end` saves.
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
            self.preemption.stop(f"the end of epoch {len(state.history)}")

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
        epoch = len(state.history) + 1
        self.preemption.stop(f"epoch {epoch}, step {step}/{self.steps}")

    def _restore(self):
        """Restores the state in the middle of an epoch.

        It must run after Keras has reset the metrics, and after the other
        callbacks have begun the epoch a second time.
        """
        last = load_checkpoint(self.folder.last_checkpoint)
        groups = {**self._groups(), "metrics": self.model.metrics_variables}
        for name, variables in groups.items():
            last.restore(name, variables)

    def _keep_if_best(self, epoch, logs):
        if self.monitor is None or self.monitor not in logs:
            return
        value = logs[self.monitor]
        if self.state.improves(value):
            self.state.best = value
            self.state.best_phase = self.state.phase
            self.state.best_epoch = epoch
            self.state.best_metrics = {
                name.removeprefix("val_"): value
                for name, value in logs.items()
                if name.startswith("val_")
            }
            save_checkpoint(
                self.folder.best_checkpoint, {"model": self.model.variables}
            )


def _temperature(model: keras.Model) -> dict[str, float]:
    layers = [x for x in model.layers if isinstance(x, ScaledLogits)]
    if not layers:
        return {}
    return {"temperature": 1.0 / float(ops.convert_to_numpy(layers[0].scale))}
