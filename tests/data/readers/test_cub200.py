import numpy as np
import pytest

from keras_dml.data.readers import read
from keras_dml.errors import UsageError
from tests.data.stand_ins import linked_names, spread, write_cub200

FOLDERS = [f"{number:03d}.Bird" for number in range(1, 201)]


def full_set(root):
    """All 11,788 rows, with empty files."""
    folders = [f"images/{folder}" for folder in FOLDERS]
    linked = linked_names(root, folders, 60)
    counts = spread(5864, 100) + spread(5924, 100)
    names, classes = [], []
    for label, count in enumerate(counts):
        first = label * 60
        names += [
            name.removeprefix("images/")
            for name in linked[first : first + count]
        ]
        classes += [label + 1] * count
    write_cub200(root, names, classes)
    return names, classes


def test_the_full_set(tmp_path):
    names, classes = full_set(tmp_path / "CUB_200_2011")
    manifest = read("cub200", tmp_path)
    train, test = manifest.part("train"), manifest.part("test")
    assert (len(manifest), len(train), len(test)) == (11788, 5864, 5924)
    assert train.num_classes == test.num_classes == 100
    assert manifest.labels.tolist() == [label - 1 for label in classes]
    assert manifest.ids.tolist() == names
    assert manifest.class_names == tuple(FOLDERS)
    assert train.class_names == tuple(FOLDERS[:100])
    assert manifest.box[0].tolist() == [1.0, 2.0, 31.0, 42.0]
    assert not manifest.partial and not manifest.seen
    inside = read("cub200", tmp_path / "CUB_200_2011")
    assert inside.checksum() == manifest.checksum()


def test_missing_images(tmp_path):
    full_set(tmp_path)
    linked = tmp_path / "images" / FOLDERS[7]
    linked.unlink()
    with pytest.raises(
        UsageError, match=r"59 of 11788 images are missing from .*008.Bird/0"
    ):
        read("cub200", tmp_path)
    partial = read("cub200", tmp_path, allow_partial=True)
    assert partial.partial and len(partial) == 11788 - 59
    assert partial.part("train").num_classes == 99


def test_a_shortened_list_is_incomplete(tmp_path):
    write_cub200(tmp_path, ["001.Bird/0.jpg", "101.Bird/1.jpg"], [1, 101])
    for folder in ("001.Bird", "101.Bird"):
        (tmp_path / "images" / folder).mkdir(parents=True)
    (tmp_path / "images" / "001.Bird" / "0.jpg").touch()
    (tmp_path / "images" / "101.Bird" / "1.jpg").touch()
    with pytest.raises(UsageError, match="2 images listed instead of 11788"):
        read("cub200", tmp_path)
    manifest = read("cub200", tmp_path, allow_partial=True)
    assert manifest.partial
    assert manifest.split.tolist() == ["train", "test"]
    np.testing.assert_array_equal(manifest.labels, [0, 100])


def test_lists_that_do_not_agree(tmp_path):
    write_cub200(tmp_path, ["a/0.jpg", "a/1.jpg"], [1, 1], missing_label=True)
    with pytest.raises(UsageError, match="must have a label and a box.*1 with"):
        read("cub200", tmp_path)


def test_a_broken_line_and_a_missing_list(tmp_path):
    write_cub200(tmp_path, ["a/0.jpg"], [1])
    (tmp_path / "images.txt").write_text("1 a/0.jpg extra\n")
    with pytest.raises(UsageError, match="must have 2 columns.*line 1"):
        read("cub200", tmp_path)
    (tmp_path / "images.txt").write_text("")
    with pytest.raises(UsageError, match="an empty list"):
        read("cub200", tmp_path)
    (tmp_path / "images.txt").write_text("1 a/0.jpg\n")
    (tmp_path / "bounding_boxes.txt").unlink()
    with pytest.raises(UsageError, match="bounding_boxes.txt must be at"):
        read("cub200", tmp_path)


@pytest.mark.parametrize(
    "content", [b"1 one\n", b"1 0\n", b"1 9999\n", b"\xff 1"]
)
def test_labels_that_are_none(tmp_path, content):
    write_cub200(tmp_path, ["a/0.jpg"], [1])
    (tmp_path / "image_class_labels.txt").write_bytes(content)
    with pytest.raises(UsageError, match="Unpack the .*archive again"):
        read("cub200", tmp_path)


def test_no_image_at_all(tmp_path):
    write_cub200(tmp_path, ["a/0.jpg"], [1])
    with pytest.raises(UsageError, match="'cub200' has no image at all"):
        read("cub200", tmp_path, allow_partial=True)
