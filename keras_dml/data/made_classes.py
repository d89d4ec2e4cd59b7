"""Classes that are made of the images, not given with them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_dml.data.manifest import Manifest


def each_a_class(images: Manifest) -> Manifest:
    """Makes each image a class, whose name is the id of the image.

    Args:
        images: Training images, whose labels are not used.
    """
    return dataclasses.replace(
        images,
        labels=np.arange(len(images)),
        class_names=tuple(images.ids.tolist()),
    )


def with_quarter_turns(images: Manifest) -> Manifest:
    """Adds each class three times, turned by 90, 180 and 270 degrees.

    Args:
        images: Training images, labeled 0..C-1.

    Returns:
        `Manifest` of four times as many images and classes.
    """
    rows: dict[str, Any] = {
        name: np.concatenate([value] * 4)
        for name, value in images.columns().items()
    }
    if images.has_label_sets:
        rows["labels"] = np.kron(np.eye(4, dtype=bool), images.labels)
    else:
        first = np.arange(4) * len(images.class_names)
        rows["labels"] += np.repeat(first, len(images))
    rows["turn"] = np.repeat(np.arange(4), len(images))
    rows["ids"] = np.array(_turned(images.ids.tolist()))
    names = _turned(images.class_names)
    return dataclasses.replace(images, class_names=names, **rows)


def upright(images: Manifest) -> Manifest:
    """Returns the images without those that `with_quarter_turns` added."""
    return images if images.turn is None else images.select(images.turn == 0)


def _turned(names: Sequence[str]) -> list[str]:
    """Returns the names, and after them those of their turned images."""
    return [
        f"{name} turned by {90 * turn}" if turn else name
        for turn in range(4)
        for name in names
    ]
