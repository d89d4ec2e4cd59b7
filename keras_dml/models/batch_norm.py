"""What the batch normalization of a backbone does during training."""

import keras

from keras_dml.layers import FrozenStatisticsBatchNormalization


def set_batch_norm_mode(model: keras.Model, mode: str) -> keras.Model:
    """Trains, half freezes or freezes the batch normalization of a model.

    Keras 3 ignores `training=False` given while a functional model is built,
    so the layers themselves are changed.

    Args:
        model: Functional or sequential model.
        mode: `"train"` leaves the model as it is. `"frozen_statistics"` keeps
            the moving statistics, and trains gamma and beta. `"frozen"` keeps
            all four.

    Returns:
        `model`, or for `"frozen_statistics"` a clone with the same weights.
    """
    if mode == "frozen_statistics":
        clone = keras.models.clone_model(
            model, clone_function=_with_frozen_statistics, recursive=True
        )
        clone.set_weights(model.get_weights())
        return clone
    if mode == "frozen":
        for layer in model._flatten_layers(include_self=False):
            if isinstance(layer, keras.layers.BatchNormalization):
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
    for layer in model._flatten_layers(include_self=False):
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.synchronized = synchronized


def _with_frozen_statistics(layer):
    cls = type(layer)
    if cls is keras.layers.BatchNormalization:
        cls = FrozenStatisticsBatchNormalization
    return cls.from_config(layer.get_config())
