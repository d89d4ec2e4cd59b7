"""Stops a training that no longer improves, at once or after a last decay."""

import logging
import math
import operator

import keras
from keras import ops

from keras_dml.callbacks.resumable import Resumable
from keras_dml.checks import integer_at_least, optional, positive_integer
from keras_dml.optimizers import DecayToZero, inner_optimizers

logger = logging.getLogger(__name__)


class EarlyStopping(Resumable, keras.callbacks.EarlyStopping):
    """Stops a training when a metric stops improving, in a resumed run too.

    It stops where `keras.callbacks.EarlyStopping` stops, but has other
    defaults, and no `restore_best_weights`, `baseline`, `verbose` or
    `mode="auto"`. `get_state` and `set_state` save and restore its state. It
    keeps the state from one `fit` to the next; a new run needs a new callback.

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
        tail: Integer, the number of epochs that follow when the metric has
            stopped improving, in which the rates fall to zero; every rate of
            the optimizer must be a `keras_dml.optimizers.DecayToZero`.
            Defaults to `0`, none.
        steps_per_epoch: Integer, the number of batches in an epoch; `tail`
            needs it. Defaults to `None`.
        epochs: Integer, the length of the training. No tail begins in its
            last `tail` epochs, which the schedule of the rates ends itself.
            Defaults to `None`, unknown.

    Attributes:
        best: The best value so far, or `None`.
        best_epoch: The epoch of the best value.
        stopped_epoch: The last epoch of a stopped training, or `0`.
        tail_epoch: The first epoch of the tail, or `None`.
        tail_steps: The step of each optimizer at which the tail begins, or
            `None`.

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
        "tail_epoch": "tail_epoch",
        "tail_steps": "tail_steps",
    }

    def __init__(
        self,
        monitor="val_recall@1",
        patience=10,
        mode="max",
        min_delta=0.0,
        start_from_epoch=0,
        tail=0,
        steps_per_epoch=None,
        epochs=None,
    ):
        self._check(patience, mode, min_delta)
        integer_at_least("start_from_epoch", start_from_epoch, 0)
        self.tail = integer_at_least("tail", tail, 0)
        self.steps_per_epoch = optional(
            positive_integer, "steps_per_epoch", steps_per_epoch
        )
        self.epochs = optional(positive_integer, "epochs", epochs)
        if tail and steps_per_epoch is None:
            raise ValueError(
                "`tail` needs `steps_per_epoch`, the number of batches in an "
                f"epoch. Received: tail={tail}, steps_per_epoch=None"
            )
        super().__init__(
            monitor,
            min_delta=min_delta,
            patience=patience,
            mode=mode,
            start_from_epoch=start_from_epoch,
        )
        self.best_epoch = 0
        self.tail_epoch = None
        self.tail_steps = None

    def on_train_begin(self, logs=None):
        self.stopped_epoch = 0
        if self.tail_epoch is not None:
            self._decay()

    def on_epoch_end(self, epoch, logs=None):
        if self.tail_epoch is not None:
            value = (logs or {}).get(self.monitor, math.nan)
            better = operator.gt if self.mode == "max" else operator.lt
            if self.best is not None and better(value, self.best):
                self.best, self.best_epoch = value, epoch
            if epoch + 1 >= self.tail_epoch + self.tail:
                self.stopped_epoch = epoch
                self.model.stop_training = True
            return
        super().on_epoch_end(epoch, logs)
        if self.stopped_epoch and self.tail:
            self.stopped_epoch = 0
            self.model.stop_training = False
            if self.epochs is None or epoch + 1 + self.tail < self.epochs:
                self.tail_epoch = epoch + 1
                # What schedules see: the steps of an earlier `fit` count, too.
                self.tail_steps = [
                    int(ops.convert_to_numpy(one._iterations))
                    for one in inner_optimizers(self.model.optimizer)
                ]
                self._decay()
                logger.info(
                    "No improvement since epoch %d: the rates fall to zero in "
                    "%d more.",
                    self.best_epoch + 1,
                    self.tail,
                )
        elif self.stopped_epoch:
            logger.info(
                "Stopped after epoch %d: no improvement since epoch %d.",
                epoch + 1,
                self.best_epoch + 1,
            )

    def _decay(self):
        optimizers = inner_optimizers(self.model.optimizer)
        # States of before this attribute lack it.
        usual = [self.tail_epoch * self.steps_per_epoch] * len(optimizers)
        starts = self.tail_steps or usual
        for optimizer, start in zip(optimizers, starts, strict=True):
            # The property `learning_rate` gives the present value.
            rate = optimizer._learning_rate
            if not isinstance(rate, DecayToZero):
                raise ValueError(
                    "`tail` needs optimizers whose rate is a `DecayToZero`. "
                    f"Received: {rate!r}"
                )
            rate.begin(start)
        if keras.backend.backend() == "jax":
            # The compiled step holds the start as a constant.
            self.model.make_train_function(force=True)
