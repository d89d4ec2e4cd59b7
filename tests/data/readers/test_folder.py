import os
from pathlib import Path

import pytest

from keras_dml.data.readers import read
from keras_dml.data.verification import verify
from keras_dml.errors import UsageError
from tests.data.stand_ins import write_classes


def test_classes_in_sorted_order(tmp_path):
    write_classes(tmp_path, {"pear": 2, "apple": 3, "fig": 1}, ".PNG")
    (tmp_path / "apple" / "notes.txt").write_text("no image")
    (tmp_path / "apple" / ".hidden.png").write_text("no image")
    (tmp_path / ".cache").mkdir()
    (tmp_path / "list.csv").write_text("no class")
    manifest = read(tmp_path)
    assert manifest.class_names == ("apple", "fig", "pear")
    assert manifest.labels.tolist() == [0, 0, 0, 1, 2, 2]
    assert manifest.ids[0] == "apple/0.PNG"
    assert manifest.paths[0] == str(tmp_path / "apple" / "0.PNG")
    assert manifest.split.tolist() == ["train"] * 4 + ["test"] * 2
    assert manifest.name == tmp_path.name


def test_the_folder_called_images(tmp_path):
    write_classes(tmp_path / "images", {"a": 1, "b": 1})
    (tmp_path / "LICENSE").touch()
    manifest = read(tmp_path)
    assert manifest.class_names == ("a", "b")
    assert manifest.name == tmp_path.name
    assert manifest.paths[0] == str(tmp_path / "images" / "a" / "0.jpg")


def test_names_that_are_no_utf_8_become_text(tmp_path):
    """The list could neither be hashed nor given to TensorFlow."""
    folder = os.fsdecode(b"caf\xe9")
    write_classes(tmp_path, {folder: 1, "tea": 1})
    manifest = read(tmp_path)
    assert manifest.class_names == ("caf\\xe9", "tea")
    assert manifest.ids.tolist() == ["caf\\xe9/0.jpg", "tea/0.jpg"]
    assert len(manifest.checksum()) == 64
    assert os.path.isfile(manifest.file_names[0])


def test_the_real_groceries(test_data):
    manifest = read(test_data / "grocery81_96")
    train, test = manifest.part("train"), manifest.part("test")
    assert (len(train), train.num_classes) == (3051, 41)
    assert (len(test), test.num_classes) == (2370, 40)
    assert manifest.class_names[1] == "001.Granny-Smith"


def test_an_empty_class(tmp_path):
    write_classes(tmp_path, {"a": 1, "b": 0, "c": 2})
    with pytest.raises(UsageError, match=r"1 of 3 without one, first 'b'. Add"):
        read(tmp_path)
    manifest = read(tmp_path, allow_partial=True)
    assert manifest.class_names == ("a", "c") and manifest.partial


def test_a_folder_one_level_too_high(tmp_path):
    write_classes(tmp_path / "train", {"a": 1, "b": 1})
    write_classes(tmp_path / "test", {"a": 1, "b": 1})
    with pytest.raises(UsageError, match="'test' is called like a split: give"):
        read(tmp_path)


@pytest.mark.parametrize("classes", [{}, {"a": 3}])
def test_too_few_classes(tmp_path, classes):
    write_classes(tmp_path, classes)
    with pytest.raises(UsageError, match="at least two sub-folders"):
        read(tmp_path)


def test_folders_of_class_folders_are_groups(tmp_path):
    write_classes(tmp_path / "wood", {"oak": 2, "elm": 1})
    write_classes(tmp_path / "ore", {"tin": 1, "lead": 2})
    manifest = read(tmp_path)
    assert manifest.class_names == ("elm", "lead", "oak", "tin")
    assert manifest.ids[0] == "wood/elm/0.jpg"
    assert manifest.group.tolist() == [1, 0, 0, 1, 1, 0]
    assert os.path.isfile(manifest.paths[5])


def test_folders_of_splits_are_no_groups(tmp_path):
    write_classes(tmp_path / "Train", {"a": 1, "b": 1})
    write_classes(tmp_path / "rest", {"c": 1, "d": 1})
    with pytest.raises(UsageError, match="give the folder that directly holds"):
        read(tmp_path)


@pytest.mark.parametrize("allow_partial", [False, True])
def test_images_at_two_depths_are_refused(tmp_path, allow_partial):
    """Those of the deeper folders were left out, and nothing was said."""
    write_classes(tmp_path, {"boot": 2, "sandal": 1})
    write_classes(tmp_path / "boot", {"red": 3})
    with pytest.raises(UsageError, match="2 images in 'boot' and 3 in 'boot/r"):
        read(tmp_path, allow_partial)


def test_a_cover_image_in_a_group_is_refused(tmp_path):
    """The groups with one became the classes, and the others were lost."""
    write_classes(tmp_path / "shoes", {"boot": 2, "sandal": 3})
    write_classes(tmp_path / "hats", {"cap": 2, "beret": 2})
    write_classes(tmp_path, {"shoes": 1, "hats": 1})
    with pytest.raises(UsageError, match=r"1 images in 'hats' and 2 in 'hats/"):
        read(tmp_path)


def test_folders_that_are_passed_over_have_no_depth(tmp_path):
    write_classes(tmp_path, {"boot": 2, "sandal": 1})
    write_classes(tmp_path / "boot" / ".thumbnails", {"small": 2})
    write_classes(tmp_path / "boot" / "__MACOSX", {"boot": 2})
    (tmp_path / "sandal" / "empty").mkdir()
    assert len(read(tmp_path)) == 3


def test_files_that_are_no_images_are_counted_once(tmp_path, caplog):
    write_classes(tmp_path, {"boot": 2, "sandal": 1})
    for name in ("boot/1.HEIC", "boot/2.heic", "sandal/1.avif", "README"):
        (tmp_path / name).touch()
    (tmp_path / "cover.jpg").touch()
    for _ in range(2):
        assert len(read(tmp_path)) == 3
    first, second = caplog.messages
    assert first.startswith(f"Passed over 4 files of {tmp_path} that are no i")
    assert "2 .heic" in first and "1 .avif" in first
    assert second.startswith(f"Passed over 1 images directly in {tmp_path},")


def test_a_folder_passed_over_for_its_name_is_named(tmp_path, caplog):
    write_classes(tmp_path, {"boot": 2, "sandal": 1, "__other__": 3})
    write_classes(tmp_path, {"__MACOSX": 1})
    assert read(tmp_path).class_names == ("boot", "sandal")
    assert caplog.messages == [
        f"Passed over 1 folders of {tmp_path} whose names start with `__`, "
        "such as __other__."
    ]


def test_a_broken_link_is_an_image_that_cannot_be_read(tmp_path):
    """Five of nine images vanished without a word."""
    write_classes(tmp_path, {"boot": 2, "sandal": 2})
    (tmp_path / "boot" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    images = read(tmp_path)
    assert len(images) == 5
    assert verify(images).bad[0] == (
        str(tmp_path / "boot" / "gone.png"),
        "no such file",
    )


@pytest.mark.parametrize(
    ("folders", "advice"),
    [
        (["nike/red", "puma/red"], "'nike/red' and 'puma/red' have one name"),
        (["train/boot", "val/cap"], "'train' is called like a split: give"),
        (["adidas/red", "cap"], "Give the folder that directly holds"),
    ],
)
def test_why_folders_are_no_groups(tmp_path, folders, advice):
    """The advice was to give one of the groups, which lost the others."""
    for folder in folders:
        images = 2 if "/" in folder else 0
        write_classes((tmp_path / folder).parent, {Path(folder).name: images})
    with pytest.raises(UsageError, match=advice):
        read(tmp_path)


def test_further_suffixes_of_jpeg_files(tmp_path):
    write_classes(tmp_path, {"boot": 1}, ".jfif")
    write_classes(tmp_path, {"sandal": 1}, ".JPE")
    assert read(tmp_path).ids.tolist() == ["boot/0.jfif", "sandal/0.JPE"]


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        ("", "", r"'cafe\\u0301' and 'caf\\xe9'"),
        ("a/", "b/", "have one name: give the classes of groups"),
    ],
)
def test_two_forms_of_one_name_are_refused(tmp_path, one, other, message):
    """One trained and the other one tested."""
    write_classes(tmp_path, {f"{one}caf\u00e9": 1, f"{one}ale": 1})
    write_classes(tmp_path, {f"{other}cafe\u0301": 1, f"{other}tea": 1})
    with pytest.raises(UsageError, match=message):
        read(tmp_path)
