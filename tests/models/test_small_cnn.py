"""The small network."""

import keras
import pytest

from keras_dml.models import small_cnn


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size, positions", [(28, 3), (96, 12)])
def test_output_shape(size, channels, positions):
    model = small_cnn((size, size, channels))
    assert model.output_shape == (None, positions, positions, 128)


def test_one_block_per_width():
    model = small_cnn((32, 32, 3), widths=(8, 16), momentum=0.8)
    norms = [
        layer
        for layer in model.layers
        if isinstance(layer, keras.layers.BatchNormalization)
    ]
    assert [norm.momentum for norm in norms] == [0.8, 0.8]
    assert model.output_shape == (None, 16, 16, 16)
