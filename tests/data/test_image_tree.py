"""What lies below a folder, and which folders are classes."""

import pytest

from keras_dml.data.image_tree import image_tree
from tests.data.stand_ins import write_empty_files


def tree_of(root, *folders):
    for folder in folders:
        write_empty_files(root / folder, 1)
    return image_tree(root)


@pytest.mark.parametrize(
    ("folders", "classes"),
    [
        (["b", "a"], ["a", "b"]),
        (["x/b", "y/a"], ["y/a", "x/b"]),
        (["x/a", "y/a"], ["x", "y"]),
        (["x/caf\u00e9", "y/cafe\u0301"], ["x", "y"]),
        (["x/a", "Test/b"], ["Test", "x"]),
        (["x/a", "x/b"], ["x/a", "x/b"]),
        (["x", "x/a", "y/b"], ["x", "y"]),
        (["images/b", "images/a"], ["a", "b"]),
        ([".a", "__a", "b"], ["b"]),
        ([""], []),
    ],
)
def test_which_folders_are_classes(tmp_path, folders, classes):
    assert tree_of(tmp_path, *folders).class_folders() == classes


def test_a_folder_without_folders_is_no_group(tmp_path):
    (tmp_path / "y").mkdir()
    assert tree_of(tmp_path, "x/a").class_folders() == ["x", "y"]


def test_images_that_lie_elsewhere_leave_all_without_a_label(tmp_path):
    assert tree_of(tmp_path, "b", "a").labels() == ["a", "b"]
    assert tree_of(tmp_path, "b/deeper").labels() is None


def test_other_files_are_counted_by_suffix(tmp_path):
    tree_of(tmp_path, "a")
    for name in ("a/1.HEIC", "a/2.heic", "LICENSE"):
        (tmp_path / name).touch()
    others = image_tree(tmp_path).others
    assert others == {".heic": 2, "without a suffix": 1}
