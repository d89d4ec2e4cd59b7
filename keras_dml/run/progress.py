"""Shows how a training gets on: a bar on a terminal, a line per epoch."""

import time

import keras
from rich.progress import TaskID

from keras_dml.console import logger, progress_bar
from keras_dml.run.pace import TIMED_STEPS, UNTIMED_STEPS
from keras_dml.run.recorder import RunState
from keras_dml.wording import clock, metric_title, roughly, titled

BAR_WIDTH = 16
# After so many steps that trace nothing, the pace is known.
PACED_STEPS = UNTIMED_STEPS + TIMED_STEPS - 1


def legend(monitor: str | None, every: int | None = 1) -> str:
    """Explains the line of an epoch.

    Args:
        monitor: Key in the logs of the validation metric. `None` if nothing
            validates.
        every: Epochs between two validations. Defaults to `1`.
    """
    validated = ""
    often = "" if every in (None, 1) else f", every {every} epochs"
    if monitor is not None:
        validated = (
            f"{_title(monitor)} (0 to 1: how well validation images of a class "
            f"find each other{often}; ★ where best so far), "
        )
    return (
        "one line each: the loss (the error in training; lower is "
        f"better), {validated}the time it took, the time left"
    )


def _title(monitor: str) -> str:
    return f"val {metric_title(monitor.removeprefix('val_'))}"


class TrainingProgress(keras.callbacks.Callback):
    """Shows a progress bar on a terminal, and logs a line per epoch.

    All metrics of the epoch go to the log file. Epochs are counted through
    all phases of the run. It must stand before `RunRecorder` in the list of
    callbacks, which records the best value.

    Args:
        state: The state of the run.
        title: Name of the stage and phase, such as `main/train`.
        epochs: Number of epochs of the phase.
        steps: Number of steps of an epoch.
        later: Number of epochs of the run after this phase. Defaults to `0`.
        monitor: Key in the logs of the validation metric. Defaults to `None`.
        validation_seconds: Seconds that all later validations take, for the
            expected time that is logged after the first steps, at the latest
            at the end of the first epoch. Defaults to `None`, which logs none.

    Attributes:
        first_step: The step at which the first epoch continues.
    """

    def __init__(
        self,
        state: RunState,
        title: str,
        epochs: int,
        steps: int,
        later: int = 0,
        monitor: str | None = None,
        validation_seconds: float | None = None,
    ) -> None:
        super().__init__()
        self.state = state
        self.title = title
        self.epochs = epochs
        self.steps = steps
        self.monitor = monitor
        self.first_step = 0
        self._total = len(state.history) + epochs - state.epoch + later
        self._seconds: list[float] = []
        self._started = self._first_end = self._last_end = 0.0
        self._step_seconds: list[float] = []
        self._traced = False
        self._validation_seconds = validation_seconds
        self._progress = progress_bar()
        self._task = TaskID(0)

    def on_epoch_begin(self, epoch, logs=None):
        self._started = time.perf_counter()
        self._progress = progress_bar(BAR_WIDTH, time_left=False)
        self._progress.start()
        self._task = self._progress.add_task(
            self._name(), total=self.steps, completed=self.first_step, note=""
        )

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        done = self.first_step + batch + 1
        # The first step traces the graph, so it says nothing of the pace.
        if batch or self._traced:
            begun = self._last_end if batch else self._started
            self._tell_time(now - begun, last=done == self.steps)
        if batch == 0:
            self._first_end = now
        self._last_end = now
        note = f"loss {float(logs['loss']):.3f}" if logs else ""
        if batch:
            step = max(now - self._first_end, 1e-6) / batch
            note = f"{1 / step:.1f} steps/s  {note}  {self._left(done, step)}"
        self._progress.update(self._task, completed=done, note=note)

    def on_epoch_end(self, epoch, logs=None):
        self.close()
        seconds = time.perf_counter() - self._started
        pace = self._pace(seconds)
        if not self.first_step:
            self._seconds.append(pace)
        values = {key: float(value) for key, value in (logs or {}).items()}
        logger.debug(
            "%s epoch %d/%d  %s",
            self.title,
            epoch + 1,
            self.epochs,
            "  ".join(f"{key} {value:.4g}" for key, value in values.items()),
        )
        parts = [
            self._name(),
            f"loss {values['loss']:.3f}" if "loss" in values else "",
            self._validated(values),
            clock(seconds),
            self._left(self.steps, pace / self.steps),
        ]
        logger.info("  ".join(filter(None, parts)))

    def close(self):
        """Removes the progress bar, also after an error."""
        self._progress.stop()

    def _pace(self, seconds):
        """Returns the seconds of a whole epoch without a traced graph."""
        steps = self.steps - self.first_step
        if not self._traced and steps > 1:
            step = (self._last_end - self._first_end) / (steps - 1)
            seconds += step - (self._first_end - self._started)
        self._traced = True
        return seconds * self.steps / steps

    def _tell_time(self, step, last):
        """Logs the expected time once the pace of the first steps is known.

        Args:
            step: Seconds of a step.
            last: Whether it was the last step of an epoch.
        """
        seconds, steps = self._validation_seconds, self._step_seconds
        if seconds is None:
            return
        steps.append(step)
        if not last and len(steps) < PACED_STEPS:
            return
        self._validation_seconds = None
        paced = steps[UNTIMED_STEPS - 1 :] or steps[-1:]
        epochs = self._total - len(self.state.history)
        seconds += (
            sum(paced) / len(paced) * (epochs * self.steps - self.first_step)
        )
        text = (
            f"about {roughly(seconds)} of training, by the pace of the first "
            "steps; then it is tested"
        )
        logger.info(titled([("Time", text)]))

    def _name(self):
        epoch = len(self.state.history) + 1
        return f"epoch {epoch:{len(str(self._total))}}/{self._total}"

    def _validated(self, values):
        """Returns the validation value; spaces if another epoch has one."""
        if self.monitor is None:
            return ""
        title = _title(self.monitor)
        value = values.get(self.monitor)
        if value is None:
            return " " * len(f"{title} 0.000 ★ best")
        best = "★ best" if self.state.improves(value) else " " * 6
        return f"{title} {value:.3f} {best}"

    def _left(self, done, step):
        """Returns the time left, by whole epochs once there is one."""
        pace = self.steps * step
        if self._seconds:
            pace = sum(self._seconds) / len(self._seconds)
        epochs = self._total - len(self.state.history) - done / self.steps
        return f"left {clock(pace * epochs)}" if epochs else ""
