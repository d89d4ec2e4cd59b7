"""The losses that other losses call."""

import keras

# It imports this file, so its functions are read when they are called.
from keras_dml.losses import registry
from keras_dml.losses.base import has_column_per_class


def as_loss(loss) -> keras.losses.Loss:
    """Returns a loss that another one calls, row by row.

    Args:
        loss: A loss, or what `keras_dml.losses.get` or `keras.losses.get`
            makes one of.

    Raises:
        ValueError: If it is a function, as for the name of one.
    """
    made = _from_keras(loss)
    if made is None and isinstance(loss, str | dict):
        made = registry.get(loss)
    if not isinstance(made, keras.losses.Loss):
        raise ValueError(
            "`loss` must be a loss object, such as `keras_dml.losses.Margin()` "
            "or `keras.losses.SparseCategoricalCrossentropy(from_logits=True)`."
            f" Received: {loss!r}"
        )
    return made


def loss_on_classes(loss, computed_on: str) -> keras.losses.Loss:
    """Returns a loss that another computes on columns of its own.

    Args:
        loss: See `as_loss`.
        computed_on: What these columns are, for the error.

    Raises:
        ValueError: If it is no loss, or takes anything but one column per
            class.
    """
    loss = as_loss(loss)
    if not has_column_per_class(loss):
        raise ValueError(
            "`loss` must take logits or similarities of all classes, to be "
            f"computed on {computed_on}. Received: {loss.name!r}, which takes "
            f"{loss.takes or 'what the losses in it take'}"
        )
    return loss


def _from_keras(loss):
    """Returns what Keras makes of a loss; `None` for what it does not know."""
    if registry.knows(loss):
        return None
    try:
        return keras.losses.get(loss)
    except ValueError:
        if isinstance(loss, str):
            return None
        raise
