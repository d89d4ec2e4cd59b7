"""Draws batches in which the images of rare classes are as likely as others."""

import numpy as np

from keras_dml.checks import positive_integer
from keras_dml.evaluation.labels import as_label_sets


def inverse_frequency_batches(
    labels, batch_size: int, seed: int, epoch: int, steps: int | None = None
) -> np.ndarray:
    """Draws images with a probability inverse to the size of their class.

    `p_i ~ 1 / n_c` for an image of a class of `n_c` images, and the mean over
    its labels if it has several. No batch holds an image twice.

    Args:
        labels: Integer array `(n,)`, the label of every image; or boolean
            matrix `(n, classes)` of their labels.
        batch_size: Integer, the number of images in a batch. If there are
            fewer images, every batch holds all of them.
        seed: Non-negative integer.
        epoch: Non-negative integer.
        steps: Integer, the number of batches to draw. Defaults to
            `n // batch_size`, at least 1.

    Returns:
        int64 array `(steps, batch_size)` of rows of `labels`.

    Raises:
        UsageError: If a number is not positive.

    Example:

    >>> rows = inverse_frequency_batches([0] * 90 + [1] * 10, 2, 0, 0, 500)
    >>> round(float((rows >= 90).mean()), 1)
    0.5

    Reference:
        Efraimidis and Spirakis, "Weighted random sampling with a reservoir",
        2006, section 2 (the draw without replacement).
    """
    positive_integer("batch_size", batch_size)
    sets = as_label_sets(labels, len(labels), "labels")
    size = min(batch_size, len(labels))
    steps = max(len(labels) // size, 1) if steps is None else steps
    positive_integer("steps", steps)
    _, codes, counts = np.unique(
        sets.values, return_inverse=True, return_counts=True
    )
    totals = np.bincount(sets.owners, 1 / counts[codes], len(labels))
    weights = totals / np.bincount(sets.owners, minlength=len(labels))
    generator = np.random.default_rng((seed, epoch))
    # One step after another: an epoch of all would not fit into memory.
    drawn = np.empty((steps, size), np.int64)
    for rows in drawn:
        times = generator.exponential(size=len(labels)) / weights
        rows[:] = np.argpartition(times, size - 1)[:size]
    return drawn
