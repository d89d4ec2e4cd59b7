"""Batch-norm statistics of new data."""

import itertools
import logging
from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

logger = logging.getLogger(__name__)


def refresh_bn(
    model: keras.Model, dataset: Iterable[Any], steps: int | None = None
) -> int:
    """Lets the moving statistics of batch normalization follow a data set.

    Forward passes in training mode, without gradients. Nothing else changes:
    trained weights are not touched, and states such as the seeds of dropout
    are put back. Layers with `trainable=False` keep their statistics.

    Not a callback: call it before `fit`. A layer of momentum `m` keeps
    `m**steps` of its old statistics.

    Args:
        model: The model, of which the inputs are the first part of a batch.
        dataset: Iterable of batches, of inputs or of `(inputs, labels)`.
        steps: Integer, the number of batches. Defaults to `None`, all.

    Returns:
        The number of batches that were used.

    Raises:
        ValueError: If there are fewer batches than `steps`, or none.

    Example:

    ```python
    refresh_bn(trainer, centre_crops, steps=200)
    ```

    Reference:
        Zhang et al., "Heated-Up Softmax Embedding", 2018 (in the authors'
        code: an epoch with learning rate 0).
    """
    statistics = {
        id(variable)
        for layer in model._flatten_layers()
        if isinstance(layer, keras.layers.BatchNormalization)
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
