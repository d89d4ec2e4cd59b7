"""Shows how a training gets on."""

import keras
from rich.progress import TaskID

from keras_dml.console import logger, progress_bar


class TrainingProgress(keras.callbacks.Callback):
    """A progress bar per epoch on a terminal, and one log line per epoch.

    Args:
        title: What is being trained, such as `main/train`.
        epochs: Number of epochs of the phase.
        steps: Number of steps of an epoch.

    Attributes:
        first_step: The step that the first epoch goes on from.
    """

    def __init__(self, title: str, epochs: int, steps: int) -> None:
        super().__init__()
        self.title = title
        self.epochs = epochs
        self.steps = steps
        self.first_step = 0
        self._progress = progress_bar()
        self._task = TaskID(0)

    def on_epoch_begin(self, epoch, logs=None):
        self._progress = progress_bar()
        self._progress.start()
        self._task = self._progress.add_task(
            f"{self.title} {epoch + 1}/{self.epochs}",
            total=self.steps,
            completed=self.first_step,
            note="",
        )

    def on_train_batch_end(self, batch, logs=None):
        note = f"loss {float(logs['loss']):.4f}" if logs else ""
        self._progress.update(
            self._task, completed=self.first_step + batch + 1, note=note
        )

    def on_epoch_end(self, epoch, logs=None):
        self.close()
        shown = "  ".join(
            f"{key} {float(value):.4g}" for key, value in (logs or {}).items()
        )
        place = f"{self.title} epoch {epoch + 1}/{self.epochs}"
        logger.info("%s  %s", place, shown)

    def close(self):
        """Takes the bar away, also after an error in the middle."""
        self._progress.stop()
