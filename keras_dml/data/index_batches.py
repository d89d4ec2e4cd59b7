"""The rows and random numbers of all batches, from any epoch on."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from keras_dml.data.augmentation import NUM_DRAWS, draws

STEPS_AT_ONCE = 64


def index_batches(
    sampler: Callable[[int], Sequence[np.ndarray]],
    sizes: list[int],
    seed: int,
    first_epoch: int,
) -> tf.data.Dataset:
    """Endless (rows, draws) of up to `STEPS_AT_ONCE` batches at a time.

    Python is asked for many batches at once, for each answer holds up the
    training loop.

    Args:
        sampler: Function of the epoch that returns its batches.
        sizes: List of the sizes that the batches of every epoch have.
        seed: Non-negative integer.
        first_epoch: Integer, the epoch to start at.

    Returns:
        Dataset of int64 `(steps, batch)` rows and float32 `(steps, batch,
        NUM_DRAWS)` draws. A batch that is not full is filled with -1.
    """
    batch_size = max(sizes)

    def generate():
        for epoch in itertools.count(first_epoch):
            batches = sampler(epoch)
            if [len(rows) for rows in batches] != sizes:
                raise ValueError(
                    "`sampler` must give the same batch sizes in every "
                    f"epoch. Received: other sizes in epoch {epoch}."
                )
            for start in range(0, len(sizes), STEPS_AT_ONCE):
                chunk = batches[start : start + STEPS_AT_ONCE]
                filled = np.full((len(chunk), batch_size), -1)
                for step, rows in enumerate(chunk):
                    filled[step, : len(rows)] = rows
                yield (
                    filled,
                    [
                        draws(seed, epoch, start + step, batch_size)
                        for step in range(len(chunk))
                    ],
                )

    return tf.data.Dataset.from_generator(
        generate,
        output_signature=(
            tf.TensorSpec((None, batch_size), tf.int64),
            tf.TensorSpec((None, batch_size, NUM_DRAWS), tf.float32),
        ),
    )
