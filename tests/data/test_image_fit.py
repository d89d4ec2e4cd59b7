import numpy as np
import pytest
import tensorflow as tf

from keras_dml.data import resizing
from keras_dml.data.image_fit import ImageFit, decode_readable


@pytest.mark.parametrize("resize", [None, 8, 12])
@pytest.mark.parametrize("squash", [False, True])
@pytest.mark.parametrize("shape", [(8, 8), (8, 11), (20, 9), (3, 3)])
def test_an_image_is_fitted_as_the_evaluation_does(shape, resize, squash):
    """Also one that has the size already, which is not resized."""
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3))
    image = tf.constant(pixels.astype(np.uint8))
    fit = ImageFit(8, 3, resize, squash)
    fitted = fit.fit(image)
    expected = resizing.resize_and_crop(image, 8, resize, squash)
    assert fitted.dtype == tf.float32
    np.testing.assert_array_equal(fitted, expected)
    spec = tf.TensorSpec((None, None, 3), tf.uint8)
    unknown_sides = tf.function(fit.fit, input_signature=[spec])
    np.testing.assert_array_equal(unknown_sides(image), expected)
    for row in fit.fit(tf.stack([image, image])):
        np.testing.assert_array_equal(row, expected)


def test_a_fit_sets_the_channels():
    gray = ImageFit(4, channels=1).fit(tf.zeros((6, 9, 3), tf.uint8))
    assert gray.shape == ImageFit(4, channels=1).shape == (4, 4, 1)
    assert ImageFit(4).fit(tf.zeros((2, 4, 4, 1))).shape == (2, 4, 4, 3)


def test_readable_files_come_with_their_rows():
    png = tf.io.encode_png(tf.fill((5, 7, 3), tf.constant(90, tf.uint8)))
    fit = ImageFit(4)
    contents = tf.constant([b"?", png.numpy(), b""])
    rows, images = decode_readable(contents, fit.decode, fit.shape)
    assert rows.numpy().tolist() == [1, 3]
    assert images.shape == (2, 4, 4, 3)
    np.testing.assert_allclose(images[0], 90, rtol=1e-5)
    assert not images[1].numpy().any()
