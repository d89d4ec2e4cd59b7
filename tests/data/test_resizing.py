import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from keras_dml.data import resizing

BILINEAR = Image.Resampling.BILINEAR


@pytest.fixture(params=[(50, 80), (80, 50), (33, 33), (7, 9)])
def image(request):
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, (*request.param, 3), dtype=np.uint8)


def pillow_resize(image, height, width):
    resized = Image.fromarray(image).resize((width, height), BILINEAR)
    return np.asarray(resized).astype(np.float32)


def torchvision_test_image(image, size, shorter_side):
    """`Resize(shorter_side)` then `CenterCrop(size)` with Pillow."""
    height, width = image.shape[:2]
    longer = int(shorter_side * max(height, width) / min(height, width))
    if height <= width:
        resized = pillow_resize(image, shorter_side, longer)
    else:
        resized = pillow_resize(image, longer, shorter_side)
    top = round((resized.shape[0] - size) / 2.0)
    left = round((resized.shape[1] - size) / 2.0)
    return resized[top : top + size, left : left + size]


@pytest.mark.parametrize("size", [(20, 20), (64, 40), (100, 100)])
def test_resize_is_that_of_pillow(image, size):
    result = resizing.resize(tf.constant(image), size)
    assert result.dtype == tf.float32
    # Pillow rounds after each of its two passes.
    np.testing.assert_allclose(result, pillow_resize(image, *size), atol=1.01)


def test_resize_without_antialiasing(image):
    result = resizing.resize(tf.constant(image), (20, 20), antialias=False)
    expected = tf.image.resize(image, (20, 20), antialias=False)
    np.testing.assert_allclose(result, expected, atol=1e-3)


@pytest.mark.parametrize(("size", "shorter_side"), [(16, 20), (24, 31), (8, 8)])
def test_resize_and_crop_is_that_of_torchvision(image, size, shorter_side):
    result = resizing.resize_and_crop(tf.constant(image), size, shorter_side)
    expected = torchvision_test_image(image, size, shorter_side)
    assert result.shape == (size, size, 3)
    np.testing.assert_allclose(result, expected, atol=1.01)


def test_squash(image):
    result = resizing.resize_and_crop(
        tf.constant(image), 12, shorter_side=16, squash=True
    )
    expected = pillow_resize(image, 16, 16)[2:14, 2:14]
    np.testing.assert_allclose(result, expected, atol=1.01)


def test_places_reach_both_ends(image):
    whole = resizing.resize(tf.constant(image), (16, 16))
    for place, begin in ((0.0, 0), (0.999, 4)):
        result = resizing.resize_and_crop(
            tf.constant(image), 12, 16, squash=True, place=tf.fill([2], place)
        )
        end = begin + 12
        expected = whole[begin:end, begin:end]
        np.testing.assert_allclose(result, expected, atol=1e-2)


def test_a_batch_is_resized_as_its_images(image):
    images = tf.stack([image, image[::-1]])
    batch = resizing.resize_and_crop(images, 10, 12)
    for row in range(2):
        single = resizing.resize_and_crop(images[row], 10, 12)
        np.testing.assert_array_equal(batch[row], single)


@pytest.mark.parametrize("turned", [False, True])
def test_a_thin_image_may_become_longer_than_int32(turned):
    """`30,000 * 100,000` was negative, and no scale."""
    pixels = np.zeros((1, 100_000, 1), np.uint8)
    pixels[:, 49_990:50_010] = 200
    image = tf.constant(pixels.transpose(1, 0, 2) if turned else pixels)
    result = resizing.resize_and_crop(image, 4, 30_000)
    np.testing.assert_allclose(result, np.full((4, 4, 1), 200.0), atol=1e-2)
