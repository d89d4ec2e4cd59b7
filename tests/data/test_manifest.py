import numpy as np
import pytest

from keras_dml.data.manifest import Manifest
from keras_dml.errors import UsageError


def make(**changes):
    values = {
        "name": "fruit",
        "labels": [2, 0, 2, 5],
        "class_names": ["a", "b", "c", "d", "e", "f"],
        "ids": ["0", "1", "2", "3"],
        "paths": ["0.jpg", "1.jpg", "2.jpg", "3.jpg"],
    }
    return Manifest(**{**values, **changes})


def test_fields_become_arrays():
    manifest = make(group=[1, 2, 3, 4], box=np.zeros((4, 4)))
    assert manifest.labels.dtype == np.int64
    assert manifest.group.dtype == np.int64
    assert manifest.split.tolist() == [""] * 4
    assert manifest.role.tolist() == [""] * 4
    assert len(manifest) == 4
    assert manifest.num_classes == 3


def test_relabeled_keeps_names_in_step():
    manifest = make()
    relabeled = manifest.relabeled()
    assert relabeled.labels.tolist() == [1, 0, 1, 2]
    assert relabeled.class_names == ("a", "c", "f")
    for before, after in zip(manifest.labels, relabeled.labels, strict=True):
        assert manifest.class_names[before] == relabeled.class_names[after]


@pytest.mark.parametrize("rows", [[3, 0], [True, False, False, True], []])
def test_select_takes_the_rows_of_every_field(rows):
    images = np.arange(4, dtype=np.uint8).reshape(4, 1, 1, 1)
    manifest = make(
        paths=None,
        images=images,
        split=["train", "test", "test", "train"],
        role=["", "query", "gallery", ""],
        group=[4, 5, 6, 7],
        box=np.arange(16.0).reshape(4, 4),
        seen=True,
        partial=True,
    )
    chosen = manifest.select(rows)
    expected = np.arange(4)[
        np.asarray(rows, dtype=bool if True in rows else int)
    ]
    assert chosen.ids.tolist() == [str(row) for row in expected]
    for field in ("labels", "images", "split", "role", "group", "box"):
        np.testing.assert_array_equal(
            getattr(chosen, field), getattr(manifest, field)[expected]
        )
    assert chosen.seen and chosen.partial
    assert chosen.class_names == manifest.class_names


def test_images_may_be_a_list():
    image = np.zeros((2, 2, 3), "uint8")
    manifest = make(paths=None, images=[image] * 4)
    assert manifest.images.shape == (4, 2, 2, 3)


def test_part():
    manifest = make(split=["train", "test", "train", ""])
    train = manifest.part("train")
    assert train.ids.tolist() == ["0", "2"]
    assert train.labels.tolist() == [0, 0]
    with pytest.raises(UsageError, match="No image of 'fruit' belongs to the"):
        make().part("test")


def test_label_sets():
    labels = np.array([[1, 0, 1], [0, 0, 1], [1, 0, 0], [0, 0, 0]], bool)
    manifest = make(labels=labels, class_names=["a", "b", "c"])
    assert manifest.num_classes == 2
    assert manifest.names.tolist() == ["a|c", "c", "a", ""]
    relabeled = manifest.select([0, 1]).relabeled()
    assert relabeled.class_names == ("a", "c")
    assert relabeled.labels.tolist() == [[1, 1], [0, 1]]
    left = manifest.without_classes_of(manifest.select([1]))
    assert left.names.tolist() == ["a", "", "a", ""]
    assert manifest.checksum() != left.checksum()


def test_label_sets_without_a_training_image():
    labels = np.array([[1, 1]] * 4)
    manifest = make(
        labels=labels > 0, class_names=["a", "b"], split=["test"] * 4
    )
    with pytest.raises(UsageError, match="a label of a test class does not tr"):
        manifest.part("train")


def test_checksum_depends_on_ids_and_labels_only():
    checksum = make().checksum()
    assert checksum == make(paths=["x", "y", "z", "w"]).checksum()
    assert checksum != make(labels=[2, 0, 2, 4]).checksum()
    assert checksum != make(ids=["0", "1", "2", "4"]).checksum()
    assert len(checksum) == 64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [0.5, 1.0, 1.0, 1.0]}, "`labels` must be integers"),
        ({"labels": np.eye(4, 6)}, "or a boolean matrix"),
        (
            {"labels": np.eye(4, 5) > 0},
            r"`labels` must have the shape \(4, 6\)",
        ),
        ({"labels": [0, 1, 2, 6]}, r"`labels` must be in 0\.\.5"),
        ({"labels": [0, 1, 2, -1]}, r"Received: labels in -1\.\.2"),
        ({"ids": ["0", "1"]}, "`ids` must have one row per label"),
        ({"ids": ["0", "1", "1", "2"]}, "Received: '1' 2 times"),
        ({"paths": None}, "Exactly one of `paths` and `images`"),
        ({"split": ["val", "", "", ""]}, "`split` must hold '', 'train'"),
        ({"role": ["probe", "", "", ""]}, "`role` must hold '', 'query'"),
        ({"box": np.zeros((4, 2))}, r"`box` must have the shape \(4, 4\)"),
        (
            {"paths": None, "images": np.zeros((4, 2, 2, 1))},
            "`images` must be a uint8 array",
        ),
    ],
)
def test_errors(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)
