"""The learning rates of a model with one or several optimizers."""

import keras
from keras import ops


def inner_optimizers(
    optimizer: keras.optimizers.Optimizer,
) -> list[keras.optimizers.Optimizer]:
    """Returns the optimizers that update variables, inside any wrapper.

    Looks into `keras.optimizers.LossScaleOptimizer`, which Keras adds under
    mixed_float16, and into `PerVariable`, or Keras' `MultiOptimizer`.

    Args:
        optimizer: A Keras optimizer.

    Returns:
        List of optimizers, `[optimizer]` for a plain one.

    Example:

    >>> adam = keras.optimizers.Adam()
    >>> inner_optimizers(keras.optimizers.LossScaleOptimizer(adam)) == [adam]
    True
    """
    if isinstance(optimizer, keras.optimizers.LossScaleOptimizer):
        return inner_optimizers(optimizer.inner_optimizer)
    if hasattr(optimizer, "optimizers"):
        return list(optimizer.optimizers)
    return [optimizer]


def follows_schedule(optimizer: keras.optimizers.Optimizer) -> bool:
    """Returns whether a schedule computes the rate, so that none can be set."""
    return not isinstance(optimizer.get_config()["learning_rate"], float)


class LearningRate:
    """Reads and multiplies the learning rate of every inner optimizer.

    With it a callback works for a plain optimizer, for `PerVariable`, and for
    a `LossScaleOptimizer` around either.

    Args:
        optimizer: The optimizer of a compiled model.

    Example:

    >>> learning_rate = LearningRate(keras.optimizers.SGD(0.5))
    >>> learning_rate.multiply(0.5)
    >>> learning_rate.values()
    {'learning_rate': 0.25}
    """

    def __init__(self, optimizer: keras.optimizers.Optimizer) -> None:
        self.optimizers = inner_optimizers(optimizer)

    def values(self) -> dict[str, float]:
        """Returns the current rates by the names that Keras logs."""
        if len(self.optimizers) == 1:
            return {"learning_rate": rate_of(self.optimizers[0])}
        return {
            f"learning_rate_{one.name}": rate_of(one) for one in self.optimizers
        }

    def require_settable(self, callback: str) -> None:
        """Raises if a schedule computes the rate of an optimizer.

        Args:
            callback: Name of the callback that changes the rate.

        Raises:
            ValueError: If an optimizer follows a `LearningRateSchedule`.
        """
        scheduled = [
            one.name for one in self.optimizers if follows_schedule(one)
        ]
        if scheduled:
            raise ValueError(
                f"`{callback}` changes the learning rate, which a schedule of "
                "the optimizer would overrule. Give the optimizer a number as "
                "its `learning_rate`, or leave the callback out. "
                f"Received: schedules in the optimizers {scheduled}"
            )

    def multiply(self, factor: float) -> None:
        """Multiplies every rate by `factor`."""
        for optimizer in self.optimizers:
            optimizer.learning_rate = rate_of(optimizer) * factor


def rate_of(optimizer: keras.optimizers.Optimizer) -> float:
    """Returns its current rate, of a mirrored variable too."""
    return float(ops.convert_to_numpy(optimizer.learning_rate))
