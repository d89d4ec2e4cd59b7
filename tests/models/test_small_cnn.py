"""The small network."""

import keras
import pytest

from keras_dml.models import small_cnn


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size, positions", [(8, 4), (28, 7), (96, 12)])
def test_output_shape(size, channels, positions):
    model = small_cnn((size, size, channels))
    assert model.output_shape == (None, positions, positions, 128)


def test_a_stem_and_two_convolutions_per_width():
    model = small_cnn((32, 32, 3), widths=(8, 16), stem=4, momentum=0.8)
    norms = [
        layer
        for layer in model.layers
        if isinstance(layer, keras.layers.BatchNormalization)
    ]
    assert [norm.gamma.shape[0] for norm in norms] == [4, 8, 8, 16, 16]
    assert {norm.momentum for norm in norms} == {0.8}
    assert model.output_shape == (None, 8, 8, 16)
