"""In-Shop Clothes Retrieval: test queries search a separate gallery."""

import numpy as np

from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import first_of, read_columns, reader
from keras_dml.errors import UsageError

PLACES = ("Eval/list_eval_partition.txt", "list_eval_partition.txt")
STATUSES = ("train", "query", "gallery")


@reader(*PLACES)
def read_inshop(root, facts) -> Manifest:
    """Reads `Eval/list_eval_partition.txt`.

    Train items are numbered first, then the items of query and gallery.

    Returns:
        `Manifest`; test rows have the role `"query"` or `"gallery"`.

    Raises:
        UsageError: If the list or images are missing.
    """
    listed = first_of(*(root / place for place in PLACES))
    names, items, status = read_columns(listed, 3, skip=2)
    unknown = sorted(set(status) - set(STATUSES))
    if unknown:
        raise UsageError(
            f"The third column of {listed} must be train, query or gallery. "
            f"Received: {unknown[0]!r}"
        )
    part = np.where(np.asarray(status) == "train", "train", "test")
    # "0" and "1" put the train items before the test items.
    keys = np.char.add(np.where(part == "train", "0", "1"), items)
    classes, labels = np.unique(keys, return_inverse=True)
    images = names[0].split("/")[0]
    found = first_of(root / "Img" / images, root / images)
    folder = found.parent if found else root / "Img"
    return Manifest(
        name=facts.name,
        labels=labels,
        class_names=[str(key)[1:] for key in classes],
        ids=names,
        paths=[str(folder / name) for name in names],
        split=part,
        role=np.where(part == "train", "", status),
    )
