"""What lies below a folder, and which folders are classes."""

import pytest

from keras_dml.config.plans import RECORD as PLAN
from keras_dml.data.image_tree import RECORDS, image_tree
from keras_dml.run.folder import RunFolder
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


@pytest.mark.parametrize("inner", ["", "images/"])
def test_folders_of_runs_are_no_classes(tmp_path, inner):
    """`fit .` trained, and then found no image in its class `runs`."""
    assert {RunFolder.record_name, PLAN} == {*RECORDS}
    write_empty_files(tmp_path / "runs" / "shoes-0" / "figures", 2)
    (tmp_path / "runs" / "shoes-0" / "config.yaml").touch()
    (tmp_path / "runs" / "both").mkdir()
    (tmp_path / "runs" / "both" / "plan.yaml").touch()
    tree = tree_of(tmp_path, f"{inner}a", f"{inner}b")
    assert tree.class_folders() == ["a", "b"]
    assert len(tree.images) == 2
    # A class may hold any other file.
    (tmp_path / f"{inner}a" / "config.yaml").touch()
    assert image_tree(tmp_path).class_folders() == ["a", "b"]


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
