"""Draws the order of the classes of balanced batches."""

import numpy as np

from keras_dml.errors import UsageError
from keras_dml.evaluation.labels import LabelSets


def draw_classes(
    generator: np.random.Generator,
    num_classes: int,
    classes: int,
    steps: int,
    groups: np.ndarray | None = None,
) -> np.ndarray:
    """Draws shuffled passes over the classes, without their remainders.

    Args:
        generator: Generator of random numbers.
        num_classes: Integer, the number of all classes.
        classes: Integer, the number of classes in a batch.
        steps: Integer, the number of batches.
        groups: Array `(num_classes,)`, the group of each class. In a pass the
            classes of a group then follow each other. Defaults to `None`: any
            class may follow any other.

    Returns:
        int64 array `(steps * classes,)`.
    """
    per_pass = num_classes // classes
    passes = -(-steps // per_pass)
    if groups is None:
        orders = np.tile(np.arange(num_classes), (passes, 1))
        orders = generator.permuted(orders, axis=1)
    else:
        names, codes = np.unique(groups, return_inverse=True)
        places = generator.random((passes, len(names)))[:, codes]
        orders = np.lexsort((generator.random(places.shape), places))
    orders = orders[:, : per_pass * classes]
    return orders.reshape(-1)[: steps * classes]


def draw_neighborhoods(
    generator: np.random.Generator,
    similarity: np.ndarray,
    classes: int,
    steps: int,
) -> np.ndarray:
    """Draws a class for each batch, and those that are most like it.

    Args:
        generator: Generator of random numbers.
        similarity: Float array `(num_classes, num_classes)`; its diagonal does
            not count.
        classes: Integer, the number of classes in a batch.
        steps: Integer, the number of batches.

    Returns:
        int64 array `(steps * classes,)`.
    """
    first = draw_classes(generator, len(similarity), 1, steps)
    rows = np.array(similarity, np.float64)[first]
    rows[np.arange(steps), first] = np.inf
    nearest = np.argsort(-rows, axis=1, kind="stable")[:, :classes]
    return nearest.reshape(-1)


def groups_of_classes(sets: LabelSets, groups: np.ndarray) -> np.ndarray:
    """Returns the group of each class, in the order of the labels.

    Args:
        sets: `LabelSets`, the labels of all images.
        groups: Array `(n,)`, the group of each image.

    Raises:
        UsageError: If the images of a class are in several groups.
    """
    names, codes = np.unique(sets.values, return_inverse=True)
    of_class, found = np.unique([codes, groups[sets.owners]], axis=1)
    if len(found) > len(names):
        twice = of_class[1:][np.diff(of_class) == 0][0]
        received = found[of_class == twice].tolist()
        raise UsageError(
            "`groups` must give all images of a class one group. Received: "
            f"groups {received} for label {names[twice]}."
        )
    return found
