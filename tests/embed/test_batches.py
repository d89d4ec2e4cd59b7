import numpy as np
import pytest
import tensorflow as tf

from keras_dml.data import resizing
from keras_dml.embed.batches import fit_image


@pytest.mark.parametrize("resize", [None, 8, 12])
@pytest.mark.parametrize("squash", [False, True])
@pytest.mark.parametrize("shape", [(8, 8), (8, 11), (20, 9), (3, 3)])
def test_an_image_is_fitted_as_the_evaluation_does(shape, resize, squash):
    """Also one that has the size already, which is not resized."""
    pixels = np.random.default_rng(0).integers(0, 256, (*shape, 3))
    image = tf.constant(pixels.astype(np.uint8))
    fitted = fit_image(image, 8, resize, squash)
    expected = resizing.resize_and_crop(image, 8, resize, squash)
    assert fitted.dtype == tf.float32
    np.testing.assert_array_equal(fitted, expected)
