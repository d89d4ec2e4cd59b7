"""The optimizers that hold a learning rate."""

import keras


def inner_optimizers(
    optimizer: keras.optimizers.Optimizer,
) -> list[keras.optimizers.Optimizer]:
    """The optimizers that update variables, inside any wrapper.

    Looks into `keras.optimizers.LossScaleOptimizer`, which mixed_float16
    brings, and into `PerVariable`.

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
    if isinstance(optimizer, keras.optimizers.MultiOptimizer):
        return list(optimizer.optimizers)
    return [optimizer]


def follows_schedule(optimizer: keras.optimizers.Optimizer) -> bool:
    """Whether the rate is a function of the step and cannot be set."""
    return not isinstance(optimizer.get_config()["learning_rate"], float)
