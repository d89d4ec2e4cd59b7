import numpy as np
import pytest

from keras_dml.layers import Predictor
from tests.conformance import check_layer, to_numpy

X = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")


@pytest.mark.slow
def test_layer(policy, tmp_path):
    check_layer(Predictor, {"hidden": 6}, X, (4, 6), tmp_path)


def test_against_numpy():
    layer = Predictor(hidden=6)
    layer.build(X.shape)
    rng = np.random.default_rng(1)
    w, gamma, beta, v, bias = (
        rng.standard_normal(weight.shape) for weight in layer.weights
    )
    layer.set_weights([w, gamma, beta, v, bias])
    hidden = X @ w
    centered = hidden - hidden.mean(axis=1, keepdims=True)
    deviation = np.sqrt(hidden.var(axis=1, keepdims=True) + 1e-3)
    hidden = np.maximum(gamma * centered / deviation + beta, 0)
    found = to_numpy(layer(X))
    np.testing.assert_allclose(found[:, :3], hidden @ v + bias, atol=1e-5)
    np.testing.assert_array_equal(found[:, 3:], X)


@pytest.mark.parametrize("hidden", [0, 1.5, "8"])
def test_refuses_a_length_that_is_none(hidden):
    with pytest.raises(ValueError, match=f"`hidden`.*{hidden}"):
        Predictor(hidden)
