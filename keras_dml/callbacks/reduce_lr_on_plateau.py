"""Lower learning rates when a metric stops improving."""

import logging

import keras

from keras_dml.callbacks.improvement import Improvement
from keras_dml.callbacks.learning_rate import LearningRate

logger = logging.getLogger(__name__)


class ReduceLROnPlateau(keras.callbacks.Callback):
    """Multiplies every learning rate when a metric stops improving.

    As `keras.callbacks.ReduceLROnPlateau`, and in addition it handles every
    optimizer of `PerVariable` and `LossScaleOptimizer`, can be resumed with
    `get_state` and `set_state`, and records in `drops` the first epoch of
    each lower rate, which `LearningRateDrops` replays. The state is kept from
    one `fit` to the next; a new run needs a new callback.

    Args:
        monitor: String, key in the logs. Defaults to `"val_recall@1"`.
        factor: Float in (0, 1). Defaults to `0.1`.
        patience: Integer, the number of epochs without improvement after
            which the rates fall. Defaults to `4`. PyTorch's scheduler with
            `patience=p` waits one epoch longer, as `p + 1` here.
        mode: `"max"` or `"min"`. Defaults to `"max"`.
        min_delta: Float, how much an improvement must be. Defaults to `1e-4`.
        cooldown: Integer, the number of epochs after a drop in which none is
            counted. Defaults to `0`.
        minimum: Float, lower bound of the rates. Defaults to `0.0`.

    Attributes:
        drops: List of integers, the first epoch of each lower rate.

    Raises:
        ValueError: If an argument is out of range; at the start of a
            training, if the optimizer follows a schedule.

    Example:

    ```python
    plateau = ReduceLROnPlateau(patience=4)
    model.fit(dataset, epochs=40, callbacks=[evaluation, plateau])
    LearningRateDrops(plateau.drops)
    ```

    Reference:
        Teh, DeVries and Taylor, "ProxyNCA++", 2020, section 4.1.
    """

    def __init__(
        self,
        monitor="val_recall@1",
        factor=0.1,
        patience=4,
        mode="max",
        min_delta=1e-4,
        cooldown=0,
        minimum=0.0,
    ):
        super().__init__()
        if not 0 < factor < 1:
            raise ValueError(
                "`factor` of `ReduceLROnPlateau` must lie between 0 "
                f"and 1. Received: factor={factor!r}"
            )
        if not isinstance(patience, int) or patience < 1:
            raise ValueError(
                "`patience` of `ReduceLROnPlateau` must be a "
                f"positive integer. Received: patience={patience!r}"
            )
        self.factor = factor
        self.patience = patience
        self.cooldown = cooldown
        self.minimum = minimum
        self.drops: list[int] = []
        self._improvement = Improvement(monitor, mode, min_delta)
        self._cooldown_left = 0

    def on_train_begin(self, logs=None):
        LearningRate(self.model.optimizer).require_settable("ReduceLROnPlateau")

    def on_epoch_end(self, epoch, logs=None):
        learning_rate = LearningRate(self.model.optimizer)
        if logs is not None:
            logs.update(learning_rate.values())
        value = self._improvement.read(logs, "ReduceLROnPlateau")
        if value is None:
            return
        self._cooldown_left = max(0, self._cooldown_left - 1)
        improved = self._improvement.update(value, epoch)
        if self._cooldown_left:
            self._improvement.wait = 0
        elif not improved and self._improvement.wait >= self.patience:
            self._drop(learning_rate, epoch)

    def get_state(self) -> dict:
        """The state as a JSON-able dict."""
        return {
            **self._improvement.get_state(),
            "cooldown_left": self._cooldown_left,
            "drops": list(self.drops),
        }

    def set_state(self, state: dict) -> None:
        """Goes on from what `get_state` gave."""
        self._improvement.set_state(state)
        self._cooldown_left = state["cooldown_left"]
        self.drops = list(state["drops"])

    def _drop(self, learning_rate, epoch):
        if learning_rate.multiply(self.factor, self.minimum):
            self.drops.append(epoch + 1)
            self._cooldown_left = self.cooldown
            self._improvement.wait = 0
            logger.info(
                "Learning rates fall from epoch %d on: %s",
                epoch + 1,
                learning_rate.values(),
            )
