"""Yields the rows and random numbers of all batches, from any epoch on."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from keras_dml.data.augmentation import NUM_DRAWS, draws

STEPS_AT_ONCE = 64


@dataclass(frozen=True)
class Replicas:
    """The replicas of one worker, each of which takes a part of a batch.

    A batch is cut into equal parts and keeps its order. So a group of rows
    stays whole if the number of groups is a multiple of the number of
    replicas.

    Args:
        first: Index of the first replica of this worker.
        count: Number of replicas of this worker.
        total: Number of replicas of all workers.
    """

    first: int = 0
    count: int = 1
    total: int = 1

    def part(self, values):
        """Returns the parts of every batch that this worker's replicas take.

        Args:
            values: Array `(steps, batch, ...)`.

        Returns:
            Array `(steps * count, batch / total, ...)`.
        """
        steps, size = values.shape[:2]
        values = values.reshape(
            steps, self.total, size // self.total, *values.shape[2:]
        )
        own = values[:, self.first : self.first + self.count]
        return own.reshape(steps * self.count, *own.shape[2:])


def index_batches(
    sampler: Callable[[int], Sequence[np.ndarray]],
    shape: tuple[int, int],
    seed: int,
    first_epoch: int,
    first_step: int = 0,
    replicas: Replicas | None = None,
) -> tf.data.Dataset:
    """Returns an endless dataset of (rows, draws).

    Each element holds up to `STEPS_AT_ONCE` batches, because every call into
    Python delays the training loop.

    Args:
        sampler: Function of the epoch that returns its batches.
        shape: The number of batches of every epoch, and the number of rows of
            a batch.
        seed: Non-negative integer.
        first_epoch: Integer, the epoch to start at.
        first_step: Integer, the step of that epoch to start at. Defaults to
            `0`.
        replicas: `Replicas` that take their parts of each batch. Defaults to
            `None`, one replica that takes the whole batch.

    Returns:
        Dataset of int64 `(steps, batch)` rows and float32 `(steps, batch,
        NUM_DRAWS)` draws. With several replicas, the parts of a batch follow
        each other as batches of one replica each.
    """
    steps, batch_size = shape
    replicas = replicas or Replicas()

    def generate():
        for epoch in itertools.count(first_epoch):
            batches = sampler(epoch)
            if [len(rows) for rows in batches] != [batch_size] * steps:
                raise ValueError(
                    "`sampler` must give the same batch sizes in every "
                    f"epoch. Received: other sizes in epoch {epoch}."
                )
            begin = first_step if epoch == first_epoch else 0
            for start in range(begin, steps, STEPS_AT_ONCE):
                chunk = np.stack(batches[start : start + STEPS_AT_ONCE])
                drawn = np.stack(
                    [
                        draws(seed, epoch, start + step, batch_size)
                        for step in range(len(chunk))
                    ]
                )
                yield replicas.part(chunk), replicas.part(drawn)

    own_size = batch_size // replicas.total
    return tf.data.Dataset.from_generator(
        generate,
        output_signature=(
            tf.TensorSpec((None, own_size), tf.int64),
            tf.TensorSpec((None, own_size, NUM_DRAWS), tf.float32),
        ),
    )
