"""Lowers learning rates at given epochs."""

from collections.abc import Iterable

import keras

from keras_dml.checks import boolean, in_interval, integer_at_least, require
from keras_dml.optimizers import LearningRate


class LearningRateDrops(keras.callbacks.Callback):
    """Multiplies every learning rate at the start of given epochs.

    The second stage of ProxyNCA++ replays the drops that `ReduceLROnPlateau`
    records in the first stage. Keras saves the rates with the optimizer, so
    that a training resumed between two epochs continues like an uninterrupted
    one.

    Args:
        epochs: List of integers, the first epoch of each lower rate, counted
            from 0.
        factor: Float in (0, 1). Defaults to `0.1`.
        author_off_by_one: Boolean, whether each drop happens one epoch later,
            as in the authors' code. Defaults to `False`.

    Raises:
        ValueError: If an argument is out of range; at the start of a
            training, if the optimizer follows a schedule.

    Example:

    ```python
    model.fit(dataset, epochs=40, callbacks=[LearningRateDrops([12, 21])])
    ```

    Reference:
        Teh, DeVries and Taylor, "ProxyNCA++", 2020, section 4.1.
    """

    def __init__(self, epochs, factor=0.1, author_off_by_one=False):
        super().__init__()
        require(
            isinstance(epochs, Iterable) and not isinstance(epochs, str),
            "epochs",
            "a list of integers",
            epochs,
        )
        self.epochs = sorted(
            integer_at_least("epochs", epoch, 0) for epoch in epochs
        )
        self.factor = in_interval("factor", factor, 0, 1)
        self.author_off_by_one = boolean("author_off_by_one", author_off_by_one)

    def on_train_begin(self, logs=None):
        if self.epochs:
            rates = LearningRate(self.model.optimizer)
            rates.require_settable("LearningRateDrops")

    def on_epoch_begin(self, epoch, logs=None):
        for _ in range(self.epochs.count(epoch - self.author_off_by_one)):
            LearningRate(self.model.optimizer).multiply(self.factor)
