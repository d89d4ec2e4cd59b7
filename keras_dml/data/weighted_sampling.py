"""Draws batches in which the images of rare classes are as likely as others."""

import numpy as np

from keras_dml.checks import positive_integer, require
from keras_dml.evaluation.labels import as_label_sets


def inverse_frequency_batches(
    labels, batch_size: int, seed: int, epoch: int, steps: int | None = None
) -> np.ndarray:
    """Draws images with a probability inverse to the size of their class.

    `p_i ~ 1 / n_c` for an image of a class of `n_c` images, and the mean over
    its labels if it has several. The images of a batch are drawn one after the
    other, each with these probabilities among those that the batch lacks. So
    no batch holds an image twice. An image without a label is never drawn.

    Args:
        labels: Integer array `(n,)`, the label of every image; or boolean
            matrix `(n, classes)` of their labels.
        batch_size: Integer, the number of images in a batch. If fewer images
            have a label, every batch holds all of them.
        seed: Non-negative integer.
        epoch: Non-negative integer.
        steps: Integer, the number of batches to draw. Defaults to the number
            of full batches of all images with a label, at least 1.

    Returns:
        int64 array `(steps, batch_size)` of rows of `labels`.

    Raises:
        UsageError: If a number is not positive, or no image has a label.

    Example:

    >>> rows = inverse_frequency_batches([0] * 90 + [1] * 10, 2, 0, 0, 500)
    >>> round(float((rows >= 90).mean()), 1)
    0.5
    """
    positive_integer("batch_size", batch_size)
    sets = as_label_sets(labels, len(labels), "labels")
    _, codes, counts = np.unique(
        sets.values, return_inverse=True, return_counts=True
    )
    totals = np.bincount(sets.owners, 1 / counts[codes], len(labels))
    numbers = np.bincount(sets.owners, minlength=len(labels))
    labeled = int(np.count_nonzero(numbers))
    wanted = "the labels of at least one image"
    require(labeled, "labels", wanted, labels, "Give each image a label.")
    size = min(batch_size, labeled)
    steps = max(labeled // size, 1) if steps is None else steps
    positive_integer("steps", steps)
    ends = np.cumsum(totals / np.maximum(numbers, 1))
    generator = np.random.default_rng((seed, epoch))
    return np.stack([_draw(generator, ends, size) for _ in range(steps)])


def _draw(generator, ends, size):
    """Draws different rows; `ends` are the running sums of their weights."""
    drawn: dict[int, None] = {}
    # Skipping what was drawn before is the same as drawing among the others.
    while len(drawn) < size:
        points = generator.uniform(0, ends[-1], size)
        rows = np.searchsorted(ends[:-1], points, side="right")
        drawn |= dict.fromkeys(rows.tolist())
    return np.fromiter(drawn, np.int64, size)
