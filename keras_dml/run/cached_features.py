"""Trains a head on features that a frozen network has computed once."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_dml.config import RunConfig
from keras_dml.console import logger
from keras_dml.data.fixed_parallelism import BATCHES_AHEAD, fixed_parallelism
from keras_dml.data.manifest import Manifest
from keras_dml.models import (
    forward_function,
    pooled_features,
    with_image_size,
)
from keras_dml.run.batches import batch_rows, make_sampler, train_batches
from keras_dml.run.data import StageData
from keras_dml.run.measure import embed

# Each image is seen with as many random crops and colors.
VIEWS = 4
MOST_BYTES = 2**31


class CachedFeatures:
    """The pooled features of a stage's images, a few views of each.

    A view depends on the seed and on its number only; epoch `e` trains on view
    `e % views`.

    Args:
        embedder: The embedder, whose network does not train.
        data: Images of the stage.
        config: The settled configuration.

    Attributes:
        head: Model from features to embeddings.
        views: List of float32 arrays `(images, features)`.
        validation: Such an array of the validation images, or `None`.
    """

    def __init__(
        self, embedder: keras.Model, data: StageData, config: RunConfig
    ) -> None:
        pooled = embedder.get_layer("pooling").output
        self.head = keras.Model(pooled, embedder.output)
        self._data = data
        self._config = config
        logger.info("Computing the features that the head trains on, once ...")
        network = pooled_features(embedder)
        size = config.data.train_shape[0]
        if size != config.data.image_size:
            network = with_image_size(embedder, size, until="pooling")
        view = 4 * len(data.fit) * pooled.shape[-1]
        count = max(1, min(VIEWS, MOST_BYTES // view))
        self.views = [
            _view(network, data.fit, config, number) for number in range(count)
        ]
        self.validation: np.ndarray | None = None
        if data.validation is not None:
            self.validation = embed(
                pooled_features(embedder), data.validation, config
            )

    def train_batches(
        self,
        first_epoch: int,
        first_step: int = 0,
        sampler: Callable[[int], Sequence[np.ndarray]] | None = None,
    ) -> tf.data.Dataset:
        """Returns endless batches, from a step of an epoch on."""
        images = self._data.fit
        sampler = sampler or make_sampler(images, self._config)

        def generate() -> Iterator[Any]:
            skipped = first_step
            for epoch in itertools.count(first_epoch):
                view = self.views[epoch % len(self.views)]
                for rows in sampler(epoch)[skipped:]:
                    targets = images.targets(rows).astype(np.int32)
                    label = targets
                    if images.has_label_sets:
                        label = rows.astype(np.int32)
                    inputs = {"image": view[rows], "label": label}
                    if images.teacher is not None:
                        inputs["teacher"] = images.teacher[rows]
                    yield inputs, targets
                skipped = 0

        rows = batch_rows(images, self._config)
        label = tf.TensorSpec((rows,), tf.int32)
        targets = label
        if images.has_label_sets:
            targets = tf.TensorSpec((rows, rows), tf.int32)
        features = tf.TensorSpec((rows, self.views[0].shape[1]), tf.float32)
        inputs = {"image": features, "label": label}
        if images.teacher is not None:
            size = (rows, images.teacher_dim)
            inputs["teacher"] = tf.TensorSpec(size, tf.float32)
        batches = tf.data.Dataset.from_generator(
            generate, output_signature=(inputs, targets)
        ).prefetch(BATCHES_AHEAD)
        return fixed_parallelism(batches)


def _view(
    network: keras.Model, images: Manifest, config: RunConfig, number: int
) -> np.ndarray:
    """Returns the features of all images, changed at random."""
    size = min(config.evaluation.batch_size, len(images))
    steps = -(-len(images) // size)
    batches = list(np.resize(np.arange(len(images)), (steps, size)))
    forward = forward_function(network)
    rows = [
        np.asarray(forward(inputs["image"]))
        for inputs, _ in train_batches(
            images,
            config,
            first_epoch=number,
            steps=steps,
            sampler=lambda epoch: batches,
        ).take(steps)
    ]
    return np.concatenate(rows)[: len(images)]
