"""Stanford Online Products: the published lists are the split by class."""

import numpy as np

from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import read_columns, reader


@reader("Ebay_train.txt")
def read_sop(root, facts) -> Manifest:
    """Reads `Ebay_train.txt` and `Ebay_test.txt`.

    Returns:
        `Manifest`; `group` is the kind of product (0 to 11).

    Raises:
        UsageError: If lists or images are missing.
    """
    class_ids, groups, names, split = [], [], [], []
    for part in ("train", "test"):
        _, class_id, group, path = read_columns(
            root / f"Ebay_{part}.txt", 4, skip=1
        )
        class_ids += class_id
        groups += group
        names += path
        split += [part] * len(path)
    labels = np.asarray(class_ids, dtype=np.int64) - 1
    return Manifest(
        name=facts.name,
        labels=labels,
        class_names=[str(n + 1) for n in range(facts.counts["classes"])],
        ids=names,
        paths=[str(root / name) for name in names],
        split=split,
        group=np.asarray(groups, dtype=np.int64) - 1,
    )
