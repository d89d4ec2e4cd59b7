"""A resumable state for the callbacks of Keras that monitor a metric."""

import math
import warnings
from typing import Any

import keras

from keras_dml.checks import not_negative, one_of, positive_integer


class Resumable(keras.callbacks.Callback):
    """Adds a state that can be saved and restored to a callback of Keras.

    A class inherits from this class first and from Keras' callback second.
    Keras forgets the best value at the start of every `fit`; this class keeps
    the state from one `fit` to the next, so that a new run needs a new
    callback. A NaN is never the best value. Keras warns after every epoch
    without the metric; here such an epoch does not count, since a training
    need not validate after each, and the end of a training warns if none had
    it.

    Attributes:
        STATE: Dict of names in the saved state to the attributes that hold
            the values.
    """

    STATE = {"best": "best", "wait": "wait"}
    monitor: str
    best: float | None
    _seen = _waiting = False

    def _check(self, patience: int, mode: str, min_delta: float) -> None:
        """Raises for arguments that Keras would silently reinterpret."""
        positive_integer("patience", patience)
        one_of("mode", mode, ("max", "min"))
        not_negative("min_delta", min_delta)

    def on_train_begin(self, logs=None):
        """Does nothing, where Keras would reset the state."""

    def on_epoch_end(self, epoch, logs=None):
        holds = self.monitor in (logs or {})
        self._seen |= holds
        self._waiting = not self._seen and self.best is None
        if holds:
            super().on_epoch_end(epoch, logs)

    def on_train_end(self, logs=None):
        super().on_train_end(logs)
        if self._waiting:
            warnings.warn(
                f"`monitor` must name a metric of the logs. Received: "
                f"monitor={self.monitor!r}, which no epoch had, so that "
                f"{type(self).__name__} did nothing.",
                stacklevel=2,
            )

    def get_state(self) -> dict[str, Any]:
        """Returns the state as a JSON-able dict."""
        return {key: getattr(self, name) for key, name in self.STATE.items()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Restores a state that `get_state` returned."""
        for key, name in self.STATE.items():
            if state.get(key) is not None:
                setattr(self, name, state[key])

    def _is_improvement(self, monitor_value, reference_value):
        better = super()._is_improvement(monitor_value, reference_value)
        return better and not math.isnan(monitor_value)
