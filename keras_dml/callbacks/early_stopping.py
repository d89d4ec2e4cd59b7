"""Stops a training that no longer improves."""

import logging

import keras

from keras_dml.callbacks.resumable import Resumable

logger = logging.getLogger(__name__)


class EarlyStopping(Resumable, keras.callbacks.EarlyStopping):
    """Stops a training when a metric stops improving, in a resumed run too.

    It is `keras.callbacks.EarlyStopping` with other defaults. `get_state` and
    `set_state` save and restore its state. It keeps the state from one `fit`
    to the next; a new run needs a new callback.

    Args:
        monitor: String, key in the logs. Defaults to `"val_recall@1"`.
        patience: Integer, after how many epochs with the metric, but without
            improvement, the training stops. Where every third epoch is
            validated, `10` are thirty epochs. Defaults to `10`.
        mode: `"max"` or `"min"`. Defaults to `"max"`.
        min_delta: Float, the smallest change that counts as an improvement.
            Defaults to `0.0`.
        start_from_epoch: Integer, the first epoch that counts. Defaults to
            `0`.

    Attributes:
        best: The best value so far, or `None`.
        best_epoch: The epoch of the best value.
        stopped_epoch: The last epoch of a stopped training, or `0`.

    Raises:
        ValueError: If an argument is out of range.

    Example:

    ```python
    stop = EarlyStopping("val_map@r", patience=5)
    model.fit(dataset, epochs=100, callbacks=[evaluation, stop])
    ```
    """

    STATE = {
        **Resumable.STATE,
        "best_epoch": "best_epoch",
        "stopped_epoch": "stopped_epoch",
    }

    def __init__(
        self,
        monitor="val_recall@1",
        patience=10,
        mode="max",
        min_delta=0.0,
        start_from_epoch=0,
    ):
        self._check(patience, mode, min_delta)
        super().__init__(
            monitor,
            min_delta=min_delta,
            patience=patience,
            mode=mode,
            start_from_epoch=start_from_epoch,
        )
        self.best_epoch = 0

    def on_train_begin(self, logs=None):
        self.stopped_epoch = 0

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        if self.stopped_epoch:
            logger.info(
                "Stopped after epoch %d: no improvement since epoch %d.",
                epoch + 1,
                self.best_epoch + 1,
            )
