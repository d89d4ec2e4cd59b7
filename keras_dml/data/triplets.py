"""Batches of triplets that a file lists."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_dml.checks import positive_integer, require
from keras_dml.data.image_tree import warn_once
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
            with another image is left out; how many are is logged.

    Returns:
        int64 array `(triplets, 3)` of rows of `ids`.

    Raises:
        UsageError: If the file does not read, lacks a column, names an image
            twice in a triplet, or has no triplet of these images.

    Example:

    >>> lines = "anchor,positive,negative", "a.jpg,b.jpg,c.jpg"
    >>> Path("triplets.csv").write_text("\\n".join(lines))
    42
    >>> read_triplets("triplets.csv", ["b.jpg", "c.jpg", "a.jpg"])
    array([[2, 0, 1]])
    """
    listed = [triplet for _, triplet in _listed(path)]
    places = {identity: row for row, identity in enumerate(np.asarray(ids))}
    rows = [[places.get(one, -1) for one in triplet] for triplet in listed]
    triplets = np.array(rows, np.int64)
    triplets = triplets[(triplets >= 0).all(axis=1)]
    first = str(ids[0])
    if not len(triplets):
        raise UsageError(
            f"{path} must hold triplets of images that train, by ids such as "
            f"{first!r}. Received: {len(listed)} triplets, each with another "
            f"image, such as {listed[0]}"
        )
    if len(triplets) < len(listed):
        warn_once(
            f"{len(listed) - len(triplets):,} of {len(listed):,} triplets of "
            f"{path} are left out: an image of theirs validates, tests, or is "
            "left out itself."
        )
    return triplets


def check_triplets(path: str | Path, ids) -> None:
    """Raises if a triplet names an image that does not exist.

    Args:
        path: As for `read_triplets`.
        ids: String array `(n,)`, the ids of all images of the source, also of
            those that do not train.

    Raises:
        UsageError: If the file does not read, or names another image.
    """
    known, first = {*np.asarray(ids).tolist()}, str(ids[0])
    for number, triplet in _listed(path):
        for one in triplet:
            if one not in known:
                raise UsageError(
                    f"Line {number} of {path} must name images of the source, "
                    f"by ids such as {first!r}. Received: {one!r}. An id is "
                    "the path in the folder or CSV file of the images."
                )


def _listed(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Yields the lines of a file of triplets with their numbers."""
    for number, line in iterate_table(Path(path), *COLUMNS):
        triplet = [line[column] for column in COLUMNS]
        if len({*triplet}) < len(COLUMNS):
            raise UsageError(
                f"Line {number} of {path} must name three images. Received: "
                f"{triplet}. A positive is another image of the class of its "
                "anchor, and a negative one of another class."
            )
        yield number, triplet


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
