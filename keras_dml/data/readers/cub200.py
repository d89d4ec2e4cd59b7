"""CUB-200-2011: classes 1 to 100 train, 101 to 200 test."""

import numpy as np

from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import read_columns, reader
from keras_dml.errors import UsageError


@reader("images.txt")
def read_cub200(root, facts) -> Manifest:
    """Reads `images.txt`, `image_class_labels.txt` and `bounding_boxes.txt`.

    The published split by image (`train_test_split.txt`) is not used.

    Returns:
        `Manifest` with boxes.

    Raises:
        UsageError: If lists or images are missing.
    """
    numbers, names = read_columns(root / "images.txt", 2)
    label_of = dict(
        zip(*read_columns(root / "image_class_labels.txt", 2), strict=True)
    )
    box_number, *sides = read_columns(root / "bounding_boxes.txt", 5)
    left, top, width, height = np.asarray(sides, dtype=np.float64)
    boxes = np.stack([left, top, left + width, top + height], axis=1)
    box_of = dict(zip(box_number, boxes, strict=True))
    unlabeled = set(numbers) - (label_of.keys() & box_of.keys())
    if unlabeled:
        raise UsageError(
            f"Every image of {root / 'images.txt'} must have a label and a "
            f"box. Received: {len(unlabeled)} without, such as image "
            f"{min(unlabeled)}. Unpack the published archive again."
        )
    labels = np.asarray([int(label_of[number]) - 1 for number in numbers])
    folder_of = dict(zip(labels.tolist(), names, strict=True))
    return Manifest(
        name=facts.name,
        labels=labels,
        class_names=[
            folder_of.get(label, f"{label + 1:03d}").split("/")[0]
            for label in range(facts.counts["classes"])
        ],
        ids=names,
        paths=[str(root / "images" / name) for name in names],
        split=np.where(labels < facts.counts["train_classes"], "train", "test"),
        box=np.stack([box_of[number] for number in numbers]),
    )
