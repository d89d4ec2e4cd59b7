"""Padding of PyTorch: against loops, at even and odd sizes."""

import keras
import numpy as np
import pytest

from keras_dml.models.torch_padding import (
    average_pool,
    ceil_max_pool,
    convolve,
)
from tests.conformance import to_numpy

RNG = np.random.default_rng(0)


def run(function, images, *arguments, **options):
    image = keras.Input(images.shape[1:])
    output = function(image, *arguments, name="layer", **options)
    return to_numpy(keras.Model(image, output)(images))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(("height", "width"), [(6, 7), (7, 6), (8, 8), (9, 9)])
def test_ceil_max_pool_keeps_the_rest(size, height, width):
    images = RNG.uniform(0, 1, (2, height, width, 3)).astype("float32")
    rows = range(0, height - size + 2, 2)
    columns = range(0, width - size + 2, 2)
    expected = [
        [
            images[:, row : row + size, column : column + size].max((1, 2))
            for column in columns
        ]
        for row in rows
    ]
    np.testing.assert_array_equal(
        run(ceil_max_pool, images, size), np.moveaxis(expected, 2, 0)
    )


def test_average_pool_counts_the_border():
    images = RNG.normal(size=(2, 4, 5, 3)).astype("float32")
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    expected = sum(
        padded[:, row : row + 4, column : column + 5]
        for row in range(3)
        for column in range(3)
    )
    np.testing.assert_allclose(
        run(average_pool, images), expected / 9, atol=1e-6
    )


@pytest.mark.parametrize("kernel", [1, 3, 7])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("side", [8, 9])
def test_convolution_is_padded_on_both_sides(kernel, stride, side):
    """Every window is centered on a pixel, the first one on the first."""
    keras.utils.set_random_seed(0)
    images = RNG.normal(size=(1, side, side, 2)).astype("float32")
    image = keras.Input(images.shape[1:])
    output = convolve(image, 4, kernel, "layer", stride=stride)
    model = keras.Model(image, output)
    weights = to_numpy(model.get_layer("layer").kernel)
    half = kernel // 2
    padded = np.pad(images[0], ((half, half), (half, half), (0, 0)))
    expected = [
        [
            np.einsum(
                "ijc,ijcf->f",
                padded[row : row + kernel, column : column + kernel],
                weights,
            )
            for column in range(0, side, stride)
        ]
        for row in range(0, side, stride)
    ]
    np.testing.assert_allclose(
        to_numpy(model(images))[0], expected, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("size", [2, 3])
def test_ceil_max_pool_of_an_unknown_side_is_that_of_the_side(size):
    image = keras.Input((None, None, 2))
    either = keras.Model(image, ceil_max_pool(image, size, "pool"))
    for side in (6, 7, 8):
        known = keras.Input((side, side, 2))
        one = keras.Model(known, ceil_max_pool(known, size, "pool"))
        pixels = np.random.default_rng(0).uniform(0, 1, (1, side, side, 2))
        np.testing.assert_array_equal(either(pixels), one(pixels))
