"""Draws the batches of an epoch from shuffled passes over all images."""

import numpy as np

from keras_dml.checks import positive_integer
from keras_dml.errors import UsageError


def random_batches(
    count: int,
    batch_size: int,
    seed: int,
    epoch: int,
    drop_remainder: bool = False,
    steps: int | None = None,
) -> list[np.ndarray]:
    """Draws the batches of one epoch from shuffled passes over all images.

    The batches of all epochs are cut from one endless series of passes. The
    rest of a pass at the end of an epoch starts the first batch of the next
    epoch, so every batch is full and every image is drawn equally often. No
    batch holds an image twice.

    Args:
        count: Integer, the number of images.
        batch_size: Integer, the number of images in a batch. If `count` is
            smaller, every batch holds all images.
        seed: Non-negative integer.
        epoch: Non-negative integer.
        drop_remainder: Boolean, whether to leave out the rest of each pass.
            The rest is always left out if a pass is shorter than two batches.
            Defaults to `False`.
        steps: Integer, the number of batches to draw. Defaults to the number
            of whole batches in one pass.

    Returns:
        List of int64 arrays of rows, all of one length.

    Raises:
        UsageError: If no batch can be drawn.

    Example:

    >>> [len(rows) for rows in random_batches(10, 4, seed=0, epoch=0)]
    [4, 4]
    """
    positive_integer("batch_size", batch_size)
    positive_integer("count", count)
    if drop_remainder and count < batch_size:
        raise UsageError(
            f"`batch_size` must be at most the number of images, {count}, "
            "when the rest of each pass is dropped. Received: "
            f"batch_size={batch_size}. Lower `batch_size`."
        )
    size = min(batch_size, count)
    length = count
    if drop_remainder or count < 2 * size:
        length -= count % size
    steps = length // size if steps is None else steps
    positive_integer("steps", steps)
    begin = epoch * steps * size
    first_pass, offset = divmod(begin, length)
    last_pass = (begin + steps * size - 1) // length
    rows = np.concatenate(
        [
            _one_pass(number, count, length, size, seed)
            for number in range(first_pass, last_pass + 1)
        ]
    )
    rows = rows[offset : offset + steps * size]
    return list(rows.reshape(steps, size))


def _one_pass(number, count, length, size, seed):
    """Draws a shuffled pass that continues the previous one.

    Its first rows complete the batch that the previous pass started, so they
    must be images that this batch does not hold yet. Only the first rows are
    rearranged for this; the end of a pass, which the next pass reads, keeps
    its shuffled order.

    Returns:
        int64 array `(length,)` of rows.
    """
    order = np.random.default_rng((seed, number)).permutation(count)[:length]
    begun = number * length % size
    if begun:
        previous = np.random.default_rng((seed, number - 1)).permutation(count)
        new = ~np.isin(order, previous[:length][-begun:])
        completes = np.flatnonzero(new)[: size - begun]
        order = np.concatenate([order[completes], np.delete(order, completes)])
    return order
