"""Cars196: classes 1 to 98 train, 99 to 196 test."""

from pathlib import Path

import numpy as np

from keras_dml.data.manifest import Manifest
from keras_dml.data.readers.published import first_of, reader
from keras_dml.errors import UsageError

_BOX = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")
_TRAIN_LIST = "cars_train_annos.mat"
_TEST_LIST = "cars_test_annos_withlabels.mat"
_KIT_LISTS = [
    f"{place}{_TRAIN_LIST}" for place in ("", "devkit/", "car_devkit/devkit/")
]


@reader("cars_annos.mat", *_KIT_LISTS)
def read_cars196(root, facts) -> Manifest:
    """Reads either of the two layouts in which the set was published.

    The first is `cars_annos.mat` with `car_ims/`. The second is the kit's
    `cars_train_annos.mat` and `cars_test_annos_withlabels.mat` with
    `cars_train/` and `cars_test/`. The published split by image is not used.
    Fields are read by name, because the column of the class differs between
    the files.

    Returns:
        `Manifest` with boxes.

    Raises:
        UsageError: If lists or images are missing.
    """
    if (root / "cars_annos.mat").is_file():
        content = _load(root / "cars_annos.mat")
        names, classes, boxes = _columns(content, "relative_im_path", "")
        class_names = content.get("class_names")
    else:
        names, classes, boxes, class_names = _read_kit(root)
    labels = np.asarray(classes, dtype=np.int64) - 1
    count = facts.counts["classes"]
    if class_names is None or len(class_names) != count:
        class_names = [str(label + 1) for label in range(count)]
    return Manifest(
        name=facts.name,
        labels=labels,
        class_names=list(class_names),
        ids=names,
        paths=[str(root / name) for name in names],
        split=np.where(labels < facts.counts["train_classes"], "train", "test"),
        box=boxes,
    )


def _read_kit(root):
    train = first_of(*(root / name for name in _KIT_LISTS))
    test = first_of(train.parent / _TEST_LIST, root / _TEST_LIST)
    if test is None:
        raise UsageError(
            f"`cars196` needs {_TEST_LIST} next to {train}. Received: no such "
            "file (cars_test_annos.mat has no labels). `keras-dml prepare "
            "cars196` says where it is published."
        )
    parts = [
        _columns(_load(path), "fname", folder)
        for path, folder in ((train, "cars_train/"), (test, "cars_test/"))
    ]
    names, classes, boxes = map(np.concatenate, zip(*parts, strict=True))
    meta = train.parent / "cars_meta.mat"
    class_names = _load(meta).get("class_names") if meta.is_file() else None
    return names, classes, boxes, class_names


def _load(path: Path):
    import scipy.io

    try:
        return scipy.io.loadmat(path, squeeze_me=True)
    except Exception as error:
        # A damaged file can raise almost any type of error.
        raise UsageError(
            f"{path} must be a MATLAB file as published. Received: {error}. "
            "Unpack or fetch it again."
        ) from error


def _columns(content, name_field, folder):
    """Returns names, classes and boxes of one file of annotations."""
    if "annotations" not in content:
        raise UsageError(
            "The lists of Cars196 must hold `annotations`. Received: "
            f"{sorted(key for key in content if key[0] != '_')}. Fetch them "
            "again."
        )
    rows = np.atleast_1d(content["annotations"])
    missing = {name_field, "class", *_BOX} - set(rows.dtype.names or ())
    if missing:
        raise UsageError(
            "The annotations of Cars196 must have the fields "
            f"{(name_field, 'class', *_BOX)}. Received: {rows.dtype.names}. "
            "Use the file with labels."
        )
    boxes = np.stack([rows[field].astype(np.float64) for field in _BOX], 1)
    names = [folder + str(name) for name in rows[name_field]]
    return names, rows["class"].astype(np.int64), boxes
