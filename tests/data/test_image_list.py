"""Which images `embed` finds, in which order, with which labels."""

import dataclasses
import itertools
import os

import numpy as np
import pytest
from PIL import Image

from keras_dml.data import readers
from keras_dml.data.image_list import list_images
from keras_dml.errors import UsageError


def make(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"an image, perhaps")
    return str(root)


def test_class_folders_are_read_as_training_reads_them(tmp_path):
    for name in ("b/2.png", "b/10.png", "a/1.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (2, 2)).save(path)
    found = list_images(str(tmp_path))
    manifest = readers.read(str(tmp_path))
    assert found.ids == manifest.ids.tolist()
    assert [found.path(row) for row in range(3)] == manifest.paths.tolist()
    assert found.labels == ["a", "b", "b"]


def test_a_folder_called_images_is_entered_as_in_training(tmp_path):
    make(tmp_path / "images", "a/1.jpg", "b/2.jpg")
    make(tmp_path, "README.txt", "__MACOSX/other.txt")
    found = list_images(str(tmp_path))
    assert found.ids == readers.read(str(tmp_path)).ids.tolist()
    assert os.path.isfile(found.path(0))


def test_a_flat_folder_has_no_labels(tmp_path, caplog):
    make(tmp_path, "2.jpg", "10.PNG", "notes.txt", ".hidden.jpg")
    with caplog.at_level("INFO", logger="keras_dml"):
        found = list_images(str(tmp_path))
    assert found.ids == ["10.PNG", "2.jpg"]
    assert found.labels is None
    assert "Passed over 1 files" in caplog.text


def test_a_nested_folder_has_no_labels(tmp_path):
    make(tmp_path, "2024/05/a.jpg", "2024/b.jpg", "c.webp")
    found = list_images(str(tmp_path))
    assert found.ids == ["2024/05/a.jpg", "2024/b.jpg", "c.webp"]
    assert found.labels is None
    assert found.path(0) == str(tmp_path / "2024" / "05" / "a.jpg")


def test_a_loop_of_links_ends(tmp_path):
    make(tmp_path / "photos", "a/1.jpg")
    (tmp_path / "photos" / "a" / "again").symlink_to(tmp_path / "photos")
    make(tmp_path / "elsewhere", "2.jpg")
    (tmp_path / "photos" / "b").symlink_to(tmp_path / "elsewhere")
    assert list_images(str(tmp_path / "photos")).ids == ["a/1.jpg", "b/2.jpg"]


def test_links_that_double_are_refused(tmp_path):
    """24 folders of two links each took hours: there are 2**24 ways."""
    levels = [tmp_path / f"level{number}" for number in range(24)]
    for folder, target in itertools.pairwise(levels):
        folder.mkdir()
        for name in "ab":
            (folder / name).symlink_to(target)
    make(levels[-1], "1.jpg")
    with pytest.raises(UsageError, match="in more than 100 ways"):
        list_images(str(levels[0]))
    assert len(list_images(str(levels[-4]))) == 8


def test_a_link_to_itself_is_no_folder(tmp_path):
    make(tmp_path, "a/1.jpg", "b/2.jpg")
    (tmp_path / "loop").symlink_to("loop")
    assert list_images(str(tmp_path)).ids == ["a/1.jpg", "b/2.jpg"]
    assert readers.read(str(tmp_path)).ids.tolist() == ["a/1.jpg", "b/2.jpg"]


def test_names_that_are_no_utf_8_become_text(tmp_path):
    name = os.fsdecode(b"caf\xe9.jpg")
    try:
        (tmp_path / name).write_bytes(b"x")
    except OSError:
        pytest.skip("The disk takes no such names.")
    found = list_images(str(tmp_path))
    assert found.ids == ["caf\\xe9.jpg"]
    assert os.path.isfile(found.path(0))


def test_a_table_needs_no_labels(tmp_path):
    make(tmp_path, "z.jpg", "y.jpg")
    table = tmp_path / "list.csv"
    table.write_text("path\nz.jpg\ny.jpg\nmissing.jpg\n")
    found = list_images(str(table))
    assert found.ids == ["z.jpg", "y.jpg", "missing.jpg"]
    assert found.labels is None
    assert found.path(0) == str(tmp_path / "z.jpg")
    table.write_text("label,path\nzebra,z.jpg\nyak,y.jpg\n")
    assert list_images(str(table)).labels == ["zebra", "yak"]


def test_several_labels_of_an_image_have_no_order(tmp_path):
    make(tmp_path, "z.jpg", "y.jpg")
    table = tmp_path / "list.csv"
    table.write_text("path,label\nz.jpg,dog|cat\ny.jpg,cat\n")
    found = list_images(str(table))
    assert found.labels == ["cat|dog", "cat"]
    assert found.several
    table.write_text("path,label\nz.jpg,cat\ny.jpg,cat\nz.jpg,dog\n")
    again = list_images(str(table))
    assert again.several
    assert again.digest(0, 2) == found.digest(0, 2)
    one = dataclasses.replace(found, several=False)
    assert one.digest(0, 2) != found.digest(0, 2)


def test_a_bar_in_the_name_of_a_folder_is_a_character(tmp_path):
    found = list_images(make(tmp_path, "cat|dog/1.jpg", "cat/2.jpg"))
    assert found.labels == ["cat", "cat|dog"]
    assert not found.several


def test_a_data_set_may_have_several_labels(monkeypatch):
    digits = readers.read("digits")
    matrix = np.eye(10, dtype=bool)[digits.labels]
    matrix[0, :2] = True
    several = dataclasses.replace(digits, labels=matrix)
    monkeypatch.setattr(readers, "read", lambda *_: several)
    found = list_images("digits")
    assert (found.labels[0], found.several) == ("0|1", True)


def test_a_data_set_comes_with_its_pixels_and_classes():
    found = list_images("digits")
    manifest = readers.read("digits")
    assert found.ids == manifest.ids.tolist()
    assert found.labels[:3] == [str(one) for one in manifest.labels[:3]]
    assert found.digest(0, 10) != found.digest(10, 20)


def test_the_digest_tells_whether_an_image_changed(tmp_path):
    root = make(tmp_path, "a/1.jpg", "a/2.jpg", "b/3.jpg")
    first = list_images(root)
    assert list_images(root).digest(0, 3) == first.digest(0, 3)
    parts = [first.digest(row, row + 1) for row in range(3)]
    (tmp_path / "b" / "3.jpg").write_bytes(b"another")
    second = list_images(root)
    changed = [second.digest(row, row + 1) for row in range(3)]
    assert np.equal(parts, changed).tolist() == [True, True, False]
    os.utime(tmp_path / "a" / "1.jpg", ns=(0, 0))
    assert list_images(root).digest(0, 1) != parts[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("path\n", "no line after"),
        ("file\na.jpg\n", "the columns path"),
        ("", "the columns path"),
        ("path,label\na.jpg,\nb.jpg,x\n", "1 of 2 without"),
        ("path\na.jpg\na.jpg\n", "'a.jpg' again on line 3"),
        ("path,label\n,x\n", "Line 2 .* must have a path"),
        ("path\n\xff\n", "in UTF-8"),
    ],
)
def test_tables_that_are_refused(tmp_path, content, message):
    table = tmp_path / "list.csv"
    table.write_bytes(content.encode("latin-1"))
    with pytest.raises(UsageError, match=message):
        list_images(str(table))


def test_a_folder_without_images_is_refused(tmp_path):
    make(tmp_path, "notes.txt")
    with pytest.raises(UsageError, match="Received: 1 other files"):
        list_images(str(tmp_path))
    with pytest.raises(UsageError, match="no known data set"):
        list_images(str(tmp_path / "nowhere"))


def test_groups_of_classes_are_labeled_as_in_training(tmp_path):
    make(tmp_path, "wood/oak/1.jpg", "wood/elm/1.jpg", "ore/tin/1.jpg")
    found = list_images(str(tmp_path))
    manifest = readers.read(str(tmp_path))
    named = dict(zip(manifest.ids, manifest.names, strict=True))
    assert dict(zip(found.ids, found.labels, strict=True)) == named


def test_a_cover_beside_the_folder_called_images_changes_no_id(tmp_path):
    make(tmp_path, "images/boot/1.jpg", "images/sandal/2.jpg", "cover.jpg")
    found = list_images(str(tmp_path))
    assert found.ids == [
        "cover.jpg",
        "images/boot/1.jpg",
        "images/sandal/2.jpg",
    ]
    assert found.labels is None
    assert readers.read(str(tmp_path)).ids.tolist() == found.ids[1:]


def test_one_image_without_a_class_is_named(tmp_path, caplog):
    make(tmp_path, "boot/1.jpg", "sandal/2.jpg", "cover.jpg")
    assert list_images(str(tmp_path)).labels is None
    (message,) = caplog.messages
    assert "1 of 3 lie in no class folder, such as cover.jpg" in message


def test_folders_of_splits_have_no_labels(tmp_path):
    make(tmp_path, "train/boot/1.jpg", "test/sandal/1.jpg")
    assert list_images(str(tmp_path)).labels is None


def test_folders_that_training_passes_over_are_passed_over(tmp_path):
    make(tmp_path, "a/1.jpg", "a/__thumbs/1.jpg", "__thumbs/1.jpg", "b/2.jpg")
    found = list_images(str(tmp_path))
    assert found.ids == readers.read(str(tmp_path)).ids.tolist()
