"""Copies of large photos: when they are kept, and that they change nothing."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from keras_dml.data import decoding, large_photos, pipeline
from keras_dml.data.augmentation import Augmentation
from keras_dml.data.image_fit import ImageFit, file_reader
from keras_dml.data.manifest import Manifest
from tests.images import ORIENTATIONS, asymmetric_picture, turned_file

PICTURE = asymmetric_picture(480, 360)
SIDE = 100
FIT = ImageFit(48, resize=56)


@pytest.fixture(autouse=True)
def nothing_kept():
    with large_photos.keeping():
        yield
    assert large_photos.kept() == 0


def written(path, kind="JPEG", picture=PICTURE):
    picture.save(path, kind, quality=95)
    return str(path)


def smaller(path, side=SIDE):
    read = tf.function(lambda one: large_photos.read_smaller(one, side))
    return read(tf.constant(path)).numpy()


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_a_large_photo_becomes_a_smaller_one_and_is_read_once(tmp_path, kind):
    path = written(tmp_path / "photo", kind)
    first = smaller(path)
    assert large_photos.kept() == 1
    pixels = np.asarray(Image.open(io.BytesIO(first)))
    assert pixels.shape == (100, 133, 3)
    expected = np.asarray(PICTURE.resize((133, 100), Image.Resampling.BOX))
    assert np.abs(pixels.astype(int) - expected).mean() < 2
    (tmp_path / "photo").unlink()
    assert smaller(path) == first


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "BMP"])
def test_other_files_stay_as_they_are(tmp_path, kind):
    small = PICTURE if kind == "BMP" else PICTURE.resize((250, 190))
    path = written(tmp_path / "photo", kind, small)
    assert smaller(path) == (tmp_path / "photo").read_bytes()
    assert large_photos.kept() == 0


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_a_copy_is_upright(tmp_path, orientation):
    path = tmp_path / "photo.jpg"
    path.write_bytes(turned_file(orientation, picture=PICTURE))
    pixels = decoding.decode(smaller(str(path))).numpy()
    expected = np.asarray(PICTURE.resize((133, 100), Image.Resampling.BOX))
    assert np.abs(pixels.astype(int) - expected).mean() < 2


def test_what_validates_is_the_same_to_the_last_digit(tmp_path):
    path = written(tmp_path / "photo.jpg")
    once, again = file_reader(FIT), file_reader(FIT, again=True)
    expected = once(path).numpy()
    for _ in range(2):
        np.testing.assert_array_equal(again(path), expected)
        assert large_photos.kept() == 1
    # Another fit is another image.
    other = ImageFit(48, resize=100)
    np.testing.assert_array_equal(
        file_reader(other, again=True)(path), file_reader(other)(path)
    )
    written(tmp_path / "small.jpg", picture=PICTURE.resize((90, 90)))
    again(str(tmp_path / "small.jpg"))
    assert large_photos.kept() == 2


def test_without_room_nothing_is_kept_and_nothing_changes(
    tmp_path, monkeypatch
):
    path = written(tmp_path / "photo.jpg")
    expected = smaller(path)
    large_photos.forget()
    assert large_photos.kept() == 0
    monkeypatch.setattr(large_photos, "SHARE", 0.0)
    assert smaller(path) == smaller(path) == expected
    assert large_photos.kept() == 0


def batches(folder, count=8):
    paths = [written(folder / f"{row}.jpg") for row in range(count)]
    images = Manifest(
        name="photos",
        labels=np.arange(count) // 2,
        class_names=list("abcd"),
        ids=[str(row) for row in range(count)],
        paths=paths,
    )
    augmentation = Augmentation(
        crop="random_resized", area=(0.3, 1.0), resize=32
    )
    found = pipeline.train_batches(
        images,
        lambda epoch: [np.arange(count)],
        image_size=32,
        augmentation=augmentation,
    )
    return np.stack([inputs["image"] for inputs, _ in found.take(2)])


def test_batches_do_not_depend_on_what_is_kept(tmp_path, monkeypatch):
    """A run that goes on has kept nothing."""
    cold = batches(tmp_path)
    assert large_photos.kept() == 8
    np.testing.assert_array_equal(batches(tmp_path), cold)
    # From whole photos they are nearly the same.
    large_photos.forget()
    monkeypatch.setattr(large_photos, "_keeping", [])
    whole = batches(tmp_path)
    monkeypatch.undo()
    assert large_photos.kept() == 0
    assert 0 < np.abs(whole - cold).mean() < 3


def test_no_crop_is_enlarged():
    augmentation = Augmentation(
        crop="random_resized", area=(0.3, 1.0), aspect=(0.75, 4 / 3), resize=160
    )
    side = large_photos.smallest_side(160, augmentation)
    narrowest = np.sqrt(0.3 * side * side / (4 / 3))
    assert 160 <= narrowest < 161


def test_a_damaged_photo_is_an_error(tmp_path):
    path = written(tmp_path / "photo.jpg")
    contents = (tmp_path / "photo.jpg").read_bytes()
    (tmp_path / "photo.jpg").write_bytes(contents[: len(contents) // 2])
    with pytest.raises(tf.errors.OpError):
        smaller(path)
    assert large_photos.kept() == 0
