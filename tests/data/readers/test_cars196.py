import pytest
import scipy.io

from keras_dml.data.readers import read
from keras_dml.errors import UsageError
from tests.data.stand_ins import (
    spread,
    write_cars_annos,
    write_cars_kit,
    write_empty_files,
)

CLASSES = [
    label + 1
    for label, count in enumerate(spread(8054, 98) + spread(8131, 98))
    for _ in range(count)
]


@pytest.mark.slow
def test_the_full_set_of_one_list(tmp_path):
    root = tmp_path / "cars196"
    files = write_empty_files(root / "car_ims", len(CLASSES))
    names = [f"car_ims/{file}" for file in files]
    write_cars_annos(root, names, CLASSES)
    manifest = read("cars196", tmp_path)
    train, test = manifest.part("train"), manifest.part("test")
    assert (len(manifest), len(train), len(test)) == (16185, 8054, 8131)
    assert train.num_classes == test.num_classes == 98
    assert manifest.ids.tolist() == names
    assert manifest.labels.tolist() == [label - 1 for label in CLASSES]
    assert manifest.box[0].tolist() == [1.0, 2.0, 30.0, 40.0]


def small_kit(root):
    """Two photos per part; class 3 is in column 4 and class 2 in none."""
    for part in ("cars_train", "cars_test"):
        write_empty_files(root / part, 2)
    files = ["0.jpg", "1.jpg"]
    write_cars_kit(root, (files, [3, 196]), (files, [98, 99]))


def test_the_layout_of_the_kit(tmp_path):
    small_kit(tmp_path)
    with pytest.raises(UsageError, match="4 images listed instead of 16185"):
        read("cars196", tmp_path)
    manifest = read("cars196", tmp_path, allow_partial=True)
    assert manifest.labels.tolist() == [2, 195, 97, 98]
    assert manifest.split.tolist() == ["train", "test", "train", "test"]
    assert manifest.ids.tolist() == [
        "cars_train/0.jpg",
        "cars_train/1.jpg",
        "cars_test/0.jpg",
        "cars_test/1.jpg",
    ]
    assert manifest.box[3].tolist() == [1.0, 2.0, 30.0, 40.0]
    assert manifest.partial


def test_class_names_of_the_kit(tmp_path):
    small_kit(tmp_path)
    names = [f"Car {number}" for number in range(196)]
    scipy.io.savemat(
        tmp_path / "devkit" / "cars_meta.mat", {"class_names": names}
    )
    manifest = read("cars196", tmp_path, allow_partial=True)
    assert [name.strip() for name in manifest.class_names] == names


def test_missing_photos(tmp_path):
    write_empty_files(tmp_path / "car_ims", 2)
    names = [f"car_ims/{number}.jpg" for number in range(5)]
    write_cars_annos(tmp_path, names, [1, 2, 3, 99, 100])
    with pytest.raises(
        UsageError, match=r"3 of 5 images are missing.*car_ims/2.jpg"
    ):
        read("cars196", tmp_path)
    manifest = read("cars196", tmp_path, allow_partial=True)
    assert manifest.ids.tolist() == names[:2]


def test_lists_without_labels_are_refused(tmp_path):
    small_kit(tmp_path)
    (tmp_path / "devkit" / "cars_test_annos_withlabels.mat").unlink()
    with pytest.raises(UsageError, match="cars_test_annos_withlabels.mat next"):
        read("cars196", tmp_path)


def test_a_damaged_list(tmp_path):
    (tmp_path / "cars_annos.mat").write_bytes(b"no matlab file" * 20)
    with pytest.raises(UsageError, match="must be a MATLAB file as published"):
        read("cars196", tmp_path)
    scipy.io.savemat(tmp_path / "cars_annos.mat", {"other": 1})
    with pytest.raises(UsageError, match="must hold `annotations`"):
        read("cars196", tmp_path)
