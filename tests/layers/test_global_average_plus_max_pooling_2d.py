import keras
import numpy as np
import pytest

from keras_dml.layers import GlobalAveragePlusMaxPooling2D
from tests.conformance import check_layer, to_numpy

X = np.random.default_rng(0).standard_normal((2, 4, 5, 3)).astype("float32")


def test_layer(policy, tmp_path):
    check_layer(GlobalAveragePlusMaxPooling2D, {}, X, (2, 3), tmp_path)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_is_the_sum_of_average_and_max(data_format):
    x = X if data_format == "channels_last" else X.transpose(0, 3, 1, 2)
    expected = to_numpy(
        keras.layers.GlobalMaxPooling2D(data_format)(x)
    ) + to_numpy(keras.layers.GlobalAveragePooling2D(data_format)(x))
    np.testing.assert_allclose(
        GlobalAveragePlusMaxPooling2D(data_format)(x), expected, rtol=1e-5
    )


def test_averages_large_half_precision_activations_without_overflow():
    x = np.full((1, 8, 8, 2), 3e4, "float16")
    pooled = GlobalAveragePlusMaxPooling2D(dtype="float16")(x)
    np.testing.assert_allclose(to_numpy(pooled), 6e4, rtol=1e-3)


def test_refuses_an_unknown_data_format():
    with pytest.raises(ValueError, match="Received: data_format='first'"):
        GlobalAveragePlusMaxPooling2D(data_format="first")
