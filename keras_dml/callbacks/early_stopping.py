"""The end of a training that stopped improving."""

import logging

import keras

from keras_dml.callbacks.improvement import Improvement

logger = logging.getLogger(__name__)


class EarlyStopping(keras.callbacks.Callback):
    """Stops a training when a metric stops improving.

    As `keras.callbacks.EarlyStopping`, which forgets its state when a run is
    resumed; here `get_state` and `set_state` keep it. Weights are not put
    back: keep the best with `keras.callbacks.ModelCheckpoint`. The state is
    kept from one `fit` to the next; a new run needs a new callback.

    Args:
        monitor: String, key in the logs. Defaults to `"val_recall@1"`.
        patience: Integer, the number of epochs without improvement after
            which the training stops. Defaults to `10`.
        mode: `"max"` or `"min"`. Defaults to `"max"`.
        min_delta: Float, how much an improvement must be. Defaults to `0.0`.
        start_from_epoch: Integer, the first epoch that counts. Defaults to
            `0`.

    Attributes:
        best: The best value so far, or `None`.
        best_epoch: Its epoch, or `None`.
        stopped_epoch: The last epoch of a stopped training, or `None`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    ```python
    stop = EarlyStopping("val_map@r", patience=5)
    model.fit(dataset, epochs=100, callbacks=[evaluation, stop])
    ```
    """

    def __init__(
        self,
        monitor="val_recall@1",
        patience=10,
        mode="max",
        min_delta=0.0,
        start_from_epoch=0,
    ):
        super().__init__()
        if not isinstance(patience, int) or patience < 1:
            raise ValueError(
                "`patience` of `EarlyStopping` must be a positive "
                f"integer. Received: patience={patience!r}"
            )
        self.patience = patience
        self.start_from_epoch = start_from_epoch
        self.stopped_epoch: int | None = None
        self._improvement = Improvement(monitor, mode, min_delta)

    @property
    def best(self) -> float | None:
        """The best value so far."""
        return self._improvement.best

    @property
    def best_epoch(self) -> int | None:
        """The epoch of the best value."""
        return self._improvement.best_epoch

    def on_epoch_end(self, epoch, logs=None):
        if epoch < self.start_from_epoch:
            return
        value = self._improvement.read(logs, "EarlyStopping")
        if value is None:
            return
        self._improvement.update(value, epoch)
        if self._improvement.wait >= self.patience:
            self.stopped_epoch = epoch
            self.model.stop_training = True
            logger.info(
                "Stopped after epoch %d: no improvement since epoch %d",
                epoch,
                self.best_epoch,
            )

    def get_state(self) -> dict:
        """The state as a JSON-able dict."""
        return {
            **self._improvement.get_state(),
            "stopped_epoch": self.stopped_epoch,
        }

    def set_state(self, state: dict) -> None:
        """Goes on from what `get_state` gave."""
        self._improvement.set_state(state)
        self.stopped_epoch = state["stopped_epoch"]
