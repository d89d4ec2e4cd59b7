import pytest

from keras_dml.data.readers import read
from keras_dml.errors import UsageError
from tests.data.stand_ins import (
    linked_names,
    write_empty_files,
    write_inshop,
)


def test_the_full_set(tmp_path):
    folders = [f"Img/img/WOMEN/{number}" for number in range(53)]
    names = [
        name.removeprefix("Img/")
        for name in linked_names(tmp_path, folders, 1000)
    ]
    statuses = ["train"] * 25882 + ["query"] * 14218 + ["gallery"] * 12612
    items = [f"id_{2 * (row % 3997):08d}" for row in range(25882)]
    items += [f"id_{2 * (row % 3985) + 1:08d}" for row in range(14218)]
    items += [f"id_{2 * (row % 3985) + 1:08d}" for row in range(12612)]
    write_inshop(tmp_path, names[: len(items)], items, statuses)
    manifest = read("inshop", tmp_path)
    train, test = manifest.part("train"), manifest.part("test")
    assert (len(train), train.num_classes) == (25882, 3997)
    assert (len(test), test.num_classes) == (26830, 3985)
    assert (test.role == "query").sum() == 14218
    assert (test.role == "gallery").sum() == 12612
    assert set(train.role) == {""}
    assert train.labels.max() == 3996 and test.labels.max() == 3984
    # The first query and the first gallery image show the same item.
    assert test.labels[0] == test.labels[14218]
    assert test.class_names[test.labels[0]] == "id_00000001"


def small_set(root, statuses):
    files = write_empty_files(root / "Img" / "img", 4)
    names = [f"img/{file}" for file in files]
    write_inshop(root, names, ["id_2", "id_1", "id_1", "id_2"], statuses)


def test_train_labels_come_first(tmp_path):
    small_set(tmp_path, ["train", "query", "gallery", "train"])
    manifest = read("inshop", tmp_path, allow_partial=True)
    assert manifest.labels.tolist() == [0, 1, 1, 0]
    assert manifest.class_names == ("id_2", "id_1")
    assert manifest.role.tolist() == ["", "query", "gallery", ""]
    assert manifest.partial


def test_counts_are_asserted(tmp_path):
    small_set(tmp_path, ["train", "query", "gallery", "train"])
    with pytest.raises(UsageError, match="1 query images listed instead of 14"):
        read("inshop", tmp_path)


def test_an_unknown_status(tmp_path):
    small_set(tmp_path, ["train", "query", "probe", "train"])
    with pytest.raises(UsageError, match="train, query or gallery.*'probe'"):
        read("inshop", tmp_path)
