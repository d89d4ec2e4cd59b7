"""Stops a training whose loss is not finite."""

import math

import keras
import numpy as np
from keras import ops

from keras_dml.errors import RunError


class TerminateOnNonFiniteLoss(keras.callbacks.Callback):
    """Stops the training at the first step whose loss is not finite.

    Unlike `keras.callbacks.TerminateOnNaN` it raises an error, so that no
    later callback saves the weights as if the epoch had ended normally; the
    last checkpoint stays valid. At the end of an epoch it checks the weights
    too, because the last step can break them without a loss that shows it.
    Put it first in the list of callbacks.

    Raises:
        RunError: If the loss or a weight is NaN or infinite. The message names
            the epoch and the step, both counted from 1; with
            `steps_per_execution` the last step of the execution.

    Example:

    ```python
    model.fit(dataset, callbacks=[TerminateOnNonFiniteLoss()])
    ```
    """

    def __init__(self):
        super().__init__()
        self._epoch = 1
        self._step = 1

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch + 1

    def on_train_batch_end(self, batch, logs=None):
        self._step = batch + 1
        loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            raise RunError(f"The loss is {loss} {self._place()}")

    def on_epoch_end(self, epoch, logs=None):
        for variable in self.model.variables:
            # NumPy does not count bfloat16 among the floats.
            if not keras.backend.is_float_dtype(variable.dtype):
                continue
            if not np.isfinite(ops.convert_to_numpy(variable)).all():
                raise RunError(
                    f"The variable {variable.path!r} is not finite "
                    f"{self._place()}"
                )

    def _place(self):
        return (
            f"in epoch {self._epoch} at step {self._step}. Lower the learning "
            "rate or clip the gradients, and look for labels that are no "
            "class of the loss; the checkpoint of the epoch before is "
            "unharmed."
        )
