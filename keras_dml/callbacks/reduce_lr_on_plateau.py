"""Lowers learning rates when a metric stops improving."""

import logging
from types import SimpleNamespace

import keras

from keras_dml.callbacks.resumable import Resumable
from keras_dml.checks import in_interval, integer_at_least, not_negative
from keras_dml.optimizers import LearningRate
from keras_dml.optimizers.learning_rate import rate_of

logger = logging.getLogger(__name__)


class ReduceLROnPlateau(Resumable, keras.callbacks.ReduceLROnPlateau):
    """Multiplies every learning rate when a metric stops improving.

    It lowers rates where `keras.callbacks.ReduceLROnPlateau` does, also those
    of `PerVariable` inside a `LossScaleOptimizer`, but has other defaults, and
    no `verbose` or `mode="auto"`. `get_state` and `set_state` save and restore
    its state. It keeps the state from one `fit` to the next; a new run needs a
    new callback. It records in `drops` the first epoch of each lower rate,
    which `LearningRateDrops` replays.

    Args:
        monitor: String, key in the logs. Defaults to `"val_recall@1"`.
        factor: Float in (0, 1). Defaults to `0.1`.
        patience: Integer, after how many epochs with the metric, but without
            improvement, the rates fall. Defaults to `4`. PyTorch's scheduler
            with `patience=p` waits one epoch longer; it equals `p + 1` here.
        mode: `"max"` or `"min"`. Defaults to `"max"`.
        min_delta: Float, the smallest change that counts as an improvement.
            Defaults to `1e-4`.
        cooldown: Integer, the number of epochs after a drop that do not count
            toward `patience`. Defaults to `0`.
        min_lr: Float, lower bound of the rates. Defaults to `0.0`.

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

    STATE = {
        **Resumable.STATE,
        "cooldown_left": "cooldown_counter",
        "drops": "drops",
    }

    def __init__(
        self,
        monitor="val_recall@1",
        factor=0.1,
        patience=4,
        mode="max",
        min_delta=1e-4,
        cooldown=0,
        min_lr=0.0,
    ):
        self._check(patience, mode, min_delta)
        in_interval("factor", factor, 0, 1)
        integer_at_least("cooldown", cooldown, 0)
        not_negative("min_lr", min_lr)
        super().__init__(
            monitor,
            factor=factor,
            patience=patience,
            mode=mode,
            min_delta=min_delta,
            cooldown=cooldown,
            min_lr=min_lr,
        )
        self.drops: list[int] = []

    @property
    def model(self):
        """The model, with its optimizer outside of a `LossScaleOptimizer`.

        Keras' callback finds several optimizers in the attribute `optimizers`
        of the optimizer, but does not look into a `LossScaleOptimizer`.
        """
        model = super().model
        optimizer = getattr(model, "optimizer", None)
        if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
            return SimpleNamespace(optimizer=optimizer.inner_optimizer)
        return model

    def on_train_begin(self, logs=None):
        LearningRate(self.model.optimizer).require_settable("ReduceLROnPlateau")

    def on_epoch_end(self, epoch, logs=None):
        rates = LearningRate(self.model.optimizer)
        before = rates.values()
        each = [rate_of(one) for one in rates.optimizers]
        super().on_epoch_end(epoch, logs)
        for one, rate in zip(rates.optimizers, each, strict=True):
            # Keras before 3.15 bounds the largest rate only.
            if rate_of(one) < self.min_lr < rate:
                one.learning_rate = self.min_lr
        if logs is not None:
            # Keras before 3.15 logs one rate, whatever the optimizer has.
            logs.update(before)
        # Those of one name count too, of which `values` has the last alone.
        if [rate_of(one) for one in rates.optimizers] != each:
            self.drops = [*self.drops, epoch + 1]
            logger.info(
                "Learning rates fall after epoch %d: %s.",
                epoch + 1,
                ", ".join(
                    f"{name} {v:g}" for name, v in rates.values().items()
                ),
            )
