"""Clones models with other layers, and refuses what Keras cannot clone."""

import collections
from collections.abc import Callable

import keras

from keras_dml.errors import UsageError
from keras_dml.layers import NestedNetwork


def overrides_call(model: keras.Model) -> bool:
    """Returns whether the class of a model replaces the `call` of Keras.

    Args:
        model: A model of any kind.

    Example:

    >>> overrides_call(keras.Sequential())
    False
    """
    return not type(model).call.__module__.startswith("keras.")


def clone_layers(
    model: keras.layers.Layer,
    clone: Callable[[keras.layers.Layer], keras.layers.Layer],
    must_change: Callable[[keras.layers.Layer], bool],
    refusal: str,
) -> keras.layers.Layer:
    """Returns a clone of a model with other layers and the same weights.

    Args:
        model: Functional or sequential model, or `NestedNetwork`; it does not
            change.
        clone: Function that returns the layer of the clone for a layer.
        must_change: Function that returns whether a layer must not be in the
            clone.
        refusal: Message of the error, with `{}` for what did not change.

    Returns:
        The clone, or `model` itself if no layer must change.

    Raises:
        UsageError: If a layer must change that Keras does not clone by itself,
            such as one inside another layer, or if the clone of a subclassed
            model would lose its `call`.

    Example:

    ```python
    clone_layers(model, in_float32, is_half, "`float32` cannot change {}.")
    ```
    """
    if not _some(must_change, model):
        return model
    if isinstance(model, NestedNetwork):
        name = type(model.whole()).__name__
        raise UsageError(refusal.format(f"the subclassed model {name}"))
    changed = keras.models.clone_model(
        model, clone_function=clone, recursive=True
    )
    # Keras keeps only the classes that it can call with inputs and outputs.
    lost = _subclassed(model) - _subclassed(changed)
    stuck = [f"the subclassed model {name}" for name in lost] + [
        f"the layer {layer.name!r}" for layer in _some(must_change, changed)
    ]
    if stuck:
        raise UsageError(refusal.format(stuck[0]))
    changed.set_weights(model.get_weights())
    return changed


def _some(condition, model):
    """Returns the layers inside a model that fulfill a condition."""
    return list(filter(condition, model._flatten_layers(include_self=False)))


def _subclassed(model):
    """Counts the models that override `call`, by the name of their class."""
    return collections.Counter(
        type(one).__name__
        for one in model._flatten_layers()
        if isinstance(one, keras.Model) and overrides_call(one)
    )
