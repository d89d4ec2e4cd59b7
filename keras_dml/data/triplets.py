"""Batches of triplets that a file lists."""

from pathlib import Path

import numpy as np

from keras_dml.checks import positive_integer, require
from keras_dml.data.readers.csv_file import iterate_table
from keras_dml.data.shuffled_passes import random_batches
from keras_dml.errors import UsageError

COLUMNS = ("anchor", "positive", "negative")


def read_triplets(path: str | Path, ids) -> np.ndarray:
    """Reads which images form triplets.

    Args:
        path: A CSV file with the columns `anchor`, `positive` and `negative`,
            each the id of an image: its path in the folder or CSV file that it
            comes from.
        ids: String array `(n,)`, the ids of the images that train. A triplet
            with another image is left out.

    Returns:
        int64 array `(triplets, 3)` of rows of `ids`.

    Raises:
        UsageError: If the file does not read, lacks a column, or has no
            triplet of these images.

    Example:

    >>> lines = "anchor,positive,negative", "a.jpg,b.jpg,c.jpg"
    >>> Path("triplets.csv").write_text("\\n".join(lines))
    42
    >>> read_triplets("triplets.csv", ["b.jpg", "c.jpg", "a.jpg"])
    array([[2, 0, 1]])
    """
    lines = [line for _, line in iterate_table(Path(path), *COLUMNS)]
    places = {identity: row for row, identity in enumerate(np.asarray(ids))}
    rows = [
        [places.get(line[column], -1) for column in COLUMNS] for line in lines
    ]
    triplets = np.array(rows, np.int64)
    triplets = triplets[(triplets >= 0).all(axis=1)]
    if not len(triplets):
        raise UsageError(
            f"{path} must hold triplets of images that train, by ids such as "
            f"{ids[0]!r}. Received: {len(lines)} triplets, each with another "
            f"image, such as {[lines[0][column] for column in COLUMNS]}"
        )
    return triplets


def triplet_batches(
    triplets, batch_size: int, seed: int, epoch: int, steps: int | None = None
) -> np.ndarray:
    """Draws batches of whole triplets from shuffled passes over all.

    Args:
        triplets: Integer array `(triplets, 3)` of rows of images.
        batch_size: Integer, the most images of a batch, at least 3.
        seed: Non-negative integer.
        epoch: Non-negative integer.
        steps: Integer, the number of batches. Defaults to the number of whole
            batches in one pass, at least 1.

    Returns:
        int64 array `(steps, 3 * (batch_size // 3))`: each three rows in turn
        are an anchor, its positive and its negative, as `miners.Given()` takes
        them. If there are fewer triplets, each batch holds all.

    Raises:
        UsageError: If a batch holds no triplet.

    Example:

    >>> triplet_batches([[0, 1, 2], [3, 4, 5]], 3, seed=0, epoch=0).shape
    (2, 3)
    """
    positive_integer("batch_size", batch_size)
    wanted = "at least 3, the images of a triplet"
    require(batch_size >= 3, "batch_size", wanted, batch_size)
    triplets = np.asarray(triplets, np.int64)
    batches = random_batches(
        len(triplets), batch_size // 3, seed, epoch, steps=steps
    )
    return triplets[np.stack(batches)].reshape(len(batches), -1)
