"""Freezes the weights of a model, with or without batch statistics.

Compile the model with a new optimizer after freezing and after unfreezing.
"""

import weakref

import keras

# The trainable flags from before the first freezing, by frozen layer.
_BEFORE: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def freeze_weights(model: keras.layers.Layer) -> None:
    """Fixes all weights, but not the statistics of batch normalization.

    The variables become non-trainable and the layers stay in training mode:
    batch normalization uses the statistics of the batch and updates its
    moving statistics. The warm-up of ProxyNCA++ trains its head in this way.

    A `.keras` file does not store this mode: freeze again after loading.

    Args:
        model: Model or layer.

    Example:

    ```python
    freeze_weights(backbone)
    model.compile(optimizer, loss)
    model.fit(dataset, epochs=5)
    unfreeze(backbone)
    model.compile(new_optimizer, loss)
    ```
    """
    _remember(model)
    for variable in model.trainable_variables:
        variable.trainable = False


def freeze_all(model: keras.layers.Layer) -> None:
    """Fixes all weights and the statistics of batch normalization.

    Batch normalization then uses its moving statistics, as at inference.
    Dropout and stochastic depth stay as they are in training.

    Args:
        model: Model or layer.
    """
    _remember(model)
    model.trainable = False


def unfreeze(model: keras.layers.Layer) -> None:
    """Restores the trainable flags from before the model was frozen.

    Does nothing to a model that no function of this module froze.

    Args:
        model: The same object that was frozen.
    """
    if model not in _BEFORE:
        return
    model.trainable, layers, variables = _BEFORE.pop(model)
    # A layer passes its flag to the layers inside, so outer ones come first.
    for layer, trainable in layers:
        layer.trainable = trainable
    for variable, trainable in variables:
        variable.trainable = trainable


def _remember(model):
    if model not in _BEFORE:
        # The value must not refer to the model, or Python never frees it.
        _BEFORE[model] = (
            model.trainable,
            [(layer, layer.trainable) for layer in _layers(model)[1:]],
            [(variable, variable.trainable) for variable in model.variables],
        )


def _layers(model):
    """Returns the model and every layer inside, outer ones first."""
    return list(model._flatten_layers(include_self=True, recursive=True))
