"""Controls batch normalization in training, and refreshes its statistics."""

import itertools
import logging
from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from keras_dml.checks import one_of
from keras_dml.layers import FrozenStatisticsBatchNormalization
from keras_dml.models.cloning import clone_layers

logger = logging.getLogger(__name__)

BATCH_NORM_MODES = ("train", "frozen_statistics", "frozen")


def set_batch_norm_mode(
    model: keras.layers.Layer, mode: str
) -> keras.layers.Layer:
    """Sets which weights and statistics of batch normalization train.

    The function changes the layers themselves, because Keras 3 ignores a
    `training=False` given while building a functional model.

    Args:
        model: Functional or sequential model, or `NestedNetwork`.
        mode: `"train"` does not change the model. `"frozen_statistics"` fixes
            the moving statistics, and trains gamma and beta. `"frozen"` fixes
            all four.

    Returns:
        `model`, or for `"frozen_statistics"` a clone with the same weights if
        it has batch normalization.

    Raises:
        UsageError: If `mode` is none of these, or is `"frozen_statistics"` and
            batch normalization is in a `NestedNetwork` or another layer, or
            `model` has some and holds a model that overrides `call`.

    Example:

    >>> from keras_dml.models import build_embedder
    >>> embedder = build_embedder("small_cnn", (28, 28, 1), dim=8)
    >>> len(embedder.trainable_weights)
    23
    >>> frozen = set_batch_norm_mode(embedder, "frozen")
    >>> len(frozen.trainable_weights)
    9
    """
    one_of("mode", mode, BATCH_NORM_MODES)
    if mode == "frozen_statistics":
        return clone_layers(
            model,
            _with_frozen_statistics,
            _adapts_statistics,
            "`batch_norm='frozen_statistics'` cannot change {}. Choose "
            "`frozen` or `train`.",
        )
    if mode == "frozen":
        for layer in _batch_norms(model):
            layer.trainable = False
    return model


def synchronize_batch_norm(
    model: keras.Model, synchronized: bool = True
) -> None:
    """Makes batch normalization use the batch of all replicas, or of one.

    With the batch of all replicas, training on several replicas equals
    training on one. Keras saves the setting with the layer, and only the
    TensorFlow backend loads it: undo it before saving.

    Args:
        model: A model whose training function has not been traced.
        synchronized: Whether to use the batch of all replicas. Defaults to
            `True`.

    Example:

    >>> from keras_dml.models import build_embedder
    >>> embedder = build_embedder("small_cnn", (28, 28, 1), dim=8)
    >>> synchronize_batch_norm(embedder)
    >>> embedder.get_layer("backbone").layers[2].synchronized
    True
    >>> synchronize_batch_norm(embedder, False)
    """
    for layer in _batch_norms(model):
        layer.synchronized = synchronized


def refresh_bn(
    model: keras.Model, dataset: Iterable[Any], steps: int | None = None
) -> int:
    """Adapts the statistics of batch normalization to a data set.

    Runs forward passes in training mode, without gradients. It does not change
    trained weights, and it restores other state such as the seeds of dropout.
    Layers with `trainable=False` keep their statistics. Call it before `fit`.
    A layer with momentum `m` keeps the share `m**steps` of its old statistics.

    Args:
        model: The model.
        dataset: Iterable of batches: inputs, or tuples or lists that start
            with the inputs, such as `(inputs, labels)`.
        steps: Integer, the number of batches. Defaults to `None`, all.

    Returns:
        The number of batches used.

    Raises:
        ValueError: If there are fewer batches than `steps`, or none.

    Example:

    ```python
    refresh_bn(trainer, center_crops, steps=200)
    ```

    Reference:
        Zhang et al., "Heated-Up Softmax Embedding", 2018 (in the authors'
        code: an epoch with learning rate 0).
    """
    statistics = {
        id(variable)
        for layer in _batch_norms(model)
        for variable in layer.non_trainable_variables
    }
    if not statistics:
        logger.info("The model has no batch normalization to refresh.")
        return 0
    others = [
        (variable, ops.convert_to_numpy(variable))
        for variable in model.non_trainable_variables
        if id(variable) not in statistics
    ]
    count = 0
    for batch in itertools.islice(dataset, steps):
        model(
            batch[0] if isinstance(batch, tuple | list) else batch,
            training=True,
        )
        count += 1
    for variable, value in others:
        variable.assign(value)
    if not count or (steps is not None and count < steps):
        raise ValueError(
            "`dataset` of `refresh_bn` must hold at least `steps` batches. "
            f"Received: {count} batches, steps={steps}"
        )
    return count


def _batch_norms(model):
    return [
        layer
        for layer in model._flatten_layers(include_self=False)
        if isinstance(layer, keras.layers.BatchNormalization)
    ]


def _with_frozen_statistics(layer):
    cls = type(layer)
    if cls is keras.layers.BatchNormalization:
        cls = FrozenStatisticsBatchNormalization
    return cls.from_config(layer.get_config())


def _adapts_statistics(layer):
    return isinstance(
        layer, keras.layers.BatchNormalization
    ) and not isinstance(layer, FrozenStatisticsBatchNormalization)
