"""The learning rates of a model, however many optimizers it has."""

import keras
from keras import ops

from keras_dml.optimizers import follows_schedule, inner_optimizers


class LearningRate:
    """Reads and multiplies the learning rate of every inner optimizer.

    A plain optimizer, `PerVariable` and a `LossScaleOptimizer` around either
    are handled alike, so that callbacks need not know which one trains.

    Args:
        optimizer: The optimizer of a compiled model.

    Example:

    >>> learning_rate = LearningRate(keras.optimizers.SGD(0.5))
    >>> learning_rate.multiply(0.5)
    True
    >>> learning_rate.values()
    {'learning_rate': 0.25}
    """

    def __init__(self, optimizer: keras.optimizers.Optimizer) -> None:
        self.optimizers = inner_optimizers(optimizer)

    def values(self) -> dict[str, float]:
        """The current rates, under the names that Keras' callbacks log."""
        rates = [
            float(ops.convert_to_numpy(optimizer.learning_rate))
            for optimizer in self.optimizers
        ]
        if len(rates) == 1:
            return {"learning_rate": rates[0]}
        return {
            f"learning_rate_{optimizer.name}": rate
            for optimizer, rate in zip(self.optimizers, rates, strict=True)
        }

    def require_settable(self, callback: str) -> None:
        """Refuses optimizers whose rate is a function of the step.

        Args:
            callback: Name of the callback that wants to change the rate.

        Raises:
            ValueError: If an optimizer follows a `LearningRateSchedule`.
        """
        scheduled = [
            optimizer.name
            for optimizer in self.optimizers
            if follows_schedule(optimizer)
        ]
        if scheduled:
            raise ValueError(
                f"`{callback}` changes the learning rate, which a schedule of "
                "the optimizer would overrule. Give the optimizer a number as "
                "its `learning_rate`, or do not use the callback. "
                f"Received: schedules in the optimizers {scheduled}"
            )

    def multiply(self, factor: float, minimum: float = 0.0) -> bool:
        """Multiplies every rate, but not below `minimum`.

        Args:
            factor: Float.
            minimum: Float, lower bound of the result. Defaults to `0.0`.

        Returns:
            Whether any rate changed.
        """
        changed = False
        for optimizer in self.optimizers:
            old = float(ops.convert_to_numpy(optimizer.learning_rate))
            new = max(old * factor, min(minimum, old))
            if new != old:
                optimizer.learning_rate = new
                changed = True
        return changed
