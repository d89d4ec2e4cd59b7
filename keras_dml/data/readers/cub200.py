"""CUB-200-2011: classes 1 to 100 train, 101 to 200 test."""

import numpy as np

from keras_dml.data.facts import dataset_facts
from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.completeness import complete, exist, find_root
from keras_dml.data.readers.lines import read_columns
from keras_dml.errors import UsageError

TRAIN_CLASSES = 100


def read_cub200(data_dir, allow_partial: bool = False) -> Manifest:
    """Reads `images.txt`, `image_class_labels.txt` and `bounding_boxes.txt`.

    The published split by image (`train_test_split.txt`) is not used.

    Args:
        data_dir: Path of the folder, or of the one above it.
        allow_partial: Boolean, whether to go on when images are missing.
            Defaults to `False`.

    Returns:
        `Manifest` with boxes.

    Raises:
        UsageError: If lists or images are missing.
    """
    facts = dataset_facts("cub200")
    root = find_root(data_dir, facts, ["images.txt"])
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
    manifest = Manifest(
        name=facts.name,
        labels=labels,
        class_names=[
            folder_of.get(label, f"{label + 1:03d}").split("/")[0]
            for label in range(facts.counts["classes"])
        ],
        ids=names,
        paths=[str(root / "images" / name) for name in names],
        split=np.where(labels < TRAIN_CLASSES, "train", "test"),
        box=np.stack([box_of[number] for number in numbers]),
    )
    found = exist(root / "images", names)
    return complete(manifest, facts, found, str(root / "images"), allow_partial)
