"""What the batch normalization of a backbone does during training."""

import keras

from keras_dml.errors import UsageError
from keras_dml.layers import FrozenStatisticsBatchNormalization, NestedNetwork


def set_batch_norm_mode(
    model: keras.layers.Layer, mode: str
) -> keras.layers.Layer:
    """Trains, half freezes or freezes the batch normalization of a model.

    Keras 3 ignores `training=False` given while a functional model is built,
    so the layers themselves are changed.

    Args:
        model: Functional or sequential model, or `NestedNetwork`.
        mode: `"train"` leaves the model as it is. `"frozen_statistics"` keeps
            the moving statistics, and trains gamma and beta. `"frozen"` keeps
            all four.

    Returns:
        `model`, or for `"frozen_statistics"` a clone with the same weights.

    Raises:
        UsageError: If a `NestedNetwork` has batch normalization whose
            statistics alone are to be frozen.
    """
    if mode == "frozen_statistics" and isinstance(model, NestedNetwork):
        if any(_normalizes_batches(layer) for layer in _layers(model)):
            raise UsageError(
                "`model.batch_norm: frozen_statistics` cannot change "
                f"{type(model.whole()).__name__}, a class of its own. Choose "
                "`frozen` or `train`."
            )
        return model
    if mode == "frozen_statistics":
        clone = keras.models.clone_model(
            model, clone_function=_with_frozen_statistics, recursive=True
        )
        clone.set_weights(model.get_weights())
        return clone
    if mode == "frozen":
        for layer in _layers(model):
            if _normalizes_batches(layer):
                layer.trainable = False
    return model


def synchronize_batch_norm(
    model: keras.Model, synchronized: bool = True
) -> None:
    """Lets batch normalization see the batch of all replicas, or its own.

    Training on several replicas then equals training on one. The setting is
    part of a saved layer: take it back before saving, for other backends of
    Keras than TensorFlow refuse it.

    Args:
        model: A model whose training function has not been traced.
        synchronized: Defaults to `True`.
    """
    for layer in _layers(model):
        if _normalizes_batches(layer):
            layer.synchronized = synchronized


def _layers(model):
    return model._flatten_layers(include_self=False)


def _normalizes_batches(layer):
    return isinstance(layer, keras.layers.BatchNormalization)


def _with_frozen_statistics(layer):
    cls = type(layer)
    if cls is keras.layers.BatchNormalization:
        cls = FrozenStatisticsBatchNormalization
    return cls.from_config(layer.get_config())
